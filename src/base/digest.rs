//! The digest of some bytes by which equal contents are recognised: the first half of SHA-256 (FIPS 180-4).
//!
//! In: bytes, in any number of pieces. Out: 16 bytes, which no two contents share by chance. Cost: one pass.

use super::pack::{Pack, Unpack};
use super::packed::Packed;

/// Equal for equal contents, and for no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

/// In hexadecimal digits.
impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Packed for Digest {
    fn pack(&self, pack: &mut Pack) {
        pack.0.extend(self.0);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let (bytes, rest) = unpack.0.split_first_chunk()?;
        unpack.0 = rest;
        Some(Digest(*bytes))
    }
}

/// Bytes of a block.
const BLOCK: usize = 64;

/// The fractional parts of the cube roots of the first primes.
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// A digest in the making.
#[derive(Clone, Debug)]
pub struct Digester {
    state: [u32; 8],
    /// Bytes that fill no block yet.
    rest: Vec<u8>,
    length: u64,
}

impl Default for Digester {
    fn default() -> Self {
        let state =
            [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
        Digester { state, rest: Vec::with_capacity(BLOCK), length: 0 }
    }
}

impl Digester {
    /// Add bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        let (first, mut bytes) = bytes.split_at(bytes.len().min((BLOCK - self.rest.len()) % BLOCK));
        self.rest.extend(first);
        if self.rest.len() == BLOCK {
            let block = std::mem::take(&mut self.rest);
            block.as_chunks().0.iter().for_each(|block| self.block(block));
        }
        if self.rest.is_empty() {
            let (blocks, rest) = bytes.as_chunks();
            blocks.iter().for_each(|block| self.block(block));
            bytes = rest;
        }
        self.rest.extend(bytes);
    }

    /// Add bytes and their number, so that what follows is not taken for a part of them.
    pub fn add_whole(&mut self, bytes: &[u8]) {
        self.add(&(bytes.len() as u64).to_le_bytes());
        self.add(bytes);
    }

    /// The digest of all that was added.
    pub fn finish(mut self) -> Digest {
        let bits = self.length.wrapping_mul(8);
        let zeros = (BLOCK + BLOCK - 9 - self.rest.len()) % BLOCK;
        let mut end = vec![0x80];
        end.resize(1 + zeros, 0);
        end.extend(bits.to_be_bytes());
        self.add(&end);
        let mut half = [0; 16];
        half.as_chunks_mut().0.iter_mut().zip(self.state).for_each(|(to, word)| *to = word.to_be_bytes());
        Digest(half)
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let mut words = [0_u32; 64];
        words.iter_mut().zip(block.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_be_bytes(*bytes));
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let a = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let b = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[at] = words[at - 16].wrapping_add(a).wrapping_add(words[at - 7]).wrapping_add(b);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for (word, round) in words.into_iter().zip(ROUNDS) {
            let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let chosen = (e & f) ^ (!e & g);
            let one = h.wrapping_add(mixed).wrapping_add(chosen).wrapping_add(round).wrapping_add(word);
            let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = mixed.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (sum, word) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the standard.
    #[test]
    fn finish_gives_half_of_sha_256() {
        let of = |bytes: &[u8]| {
            let mut digester = Digester::default();
            digester.add(bytes);
            digester.finish().to_string()
        };
        assert_eq!(of(b""), "e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(of(b"abc"), "ba7816bf8f01cfea414140de5dae2223");
        assert_eq!(of(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), "248d6a61d20638b8e5c026930c3e6039");
        assert_eq!(of(&[b'a'; 1_000_000]), "cdc76e5c9914fb9281a1c7e284d73e67");
    }

    #[test]
    fn add_does_not_see_how_bytes_are_divided() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|i| (i * 7) as u8).collect();
        let divided = |size: usize| {
            let mut digester = Digester::default();
            bytes.chunks(size).for_each(|piece| digester.add(piece));
            digester.finish()
        };
        assert!([1, 3, 63, 64, 65, 500].iter().all(|size| divided(*size) == divided(1_000)));
        let whole = |pieces: [&[u8]; 2]| {
            let mut digester = Digester::default();
            pieces.iter().for_each(|piece| digester.add_whole(piece));
            digester.finish()
        };
        assert_ne!(whole([b"ab", b"c"]), whole([b"a", b"bc"]));
    }
}
