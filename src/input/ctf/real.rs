//! Floating point numbers of any size: the bytes of one, and the nearest double.
//!
//! IEEE 754-2019 section 3.6 defines the binary interchange formats of 16, 32, 64, 128 and any multiple of 32 bits from
//! there on: a sign, `w` bits of exponent, and `t` bits of fraction. The machine has those of 32 and 64 bits; for the
//! others the leading 62 bits of the fraction, and whether a later bit is set, decide the double, so the cost is that
//! of reading the bits. Rounding is to nearest, ties to even: too large becomes infinite, NaN stays NaN (its payload is
//! not kept).

use crate::base::cursor::{self, ByteOrder};

/// The largest size in bits; no format in use has more than 256.
pub(super) const MOST_BITS: u16 = 16_384;

/// The leading bits of the fraction that are used; of the bits after them only matters whether one is set.
const HEAD: u32 = 62;

/// A floating point number in a packet.
#[derive(Clone, Copy, Debug)]
pub struct Real<'a> {
    /// The bytes that hold all of the number.
    pub(super) data: &'a [u8],
    /// Its offset in `data`, in bits.
    pub(super) at: u64,
    /// Its size in bits; [`is_format`] holds.
    pub(super) size: u16,
    /// The order of its bytes.
    pub(super) byte_order: ByteOrder,
    /// The order of its bits is opposite to that of its bytes (CTF 2).
    pub(super) reversed: bool,
}

/// True where an interchange format has this many bits.
pub(super) fn is_format(bits: u64) -> bool {
    matches!(bits, 16 | 32 | 64) || (bits >= 128 && bits.is_multiple_of(32))
}

/// Bits of the exponent of a format: 5, 8, 11, and round(4 log2 k) - 13 from 128 bits on.
fn exponent_bits(size: u16) -> u32 {
    match size {
        16 => 5,
        32 => 8,
        64 => 11,
        // round(x) is the floor of half of floor(2 x + 1), and 8 log2 k + 1 is log2 of 2 k^8.
        _ => (2 * u128::from(size).pow(8)).ilog2() / 2 - 13,
    }
}

impl<'a> Real<'a> {
    /// Its size in bits.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// `n` bits (1 to 64) of it, of which the lowest is bit `from`; bit 0 is the least significant.
    fn bits(&self, from: u32, n: u32) -> u64 {
        let size = u32::from(self.size);
        let (low, high) = if self.reversed { (size - from - n, size - from) } else { (from, from + n) };
        let at = self.at + u64::from(if self.byte_order == ByteOrder::Big { size - high } else { low });
        // The decoder has checked that the number is within the data.
        let bits = cursor::bits(self.data, at, n, self.byte_order).unwrap_or(0);
        if self.reversed { bits.reverse_bits() >> (64 - n) } else { bits }
    }

    /// Groups of 16 bits, the most significant first.
    pub fn groups(&self) -> impl Iterator<Item = u16> {
        (0..u32::from(self.size) / 16).rev().map(|i| self.bits(16 * i, 16) as u16)
    }

    /// The nearest double.
    pub fn value(&self) -> f64 {
        match self.size {
            32 => f64::from(f32::from_bits(self.bits(0, 32) as u32)),
            64 => f64::from_bits(self.bits(0, 64)),
            _ => self.rounded(),
        }
    }

    fn rounded(&self) -> f64 {
        let w = exponent_bits(self.size);
        let t = u32::from(self.size) - 1 - w;
        let sign = self.bits(t + w, 1) << 63;
        let (biased, bias) = (self.bits(t, w), (1i64 << (w - 1)) - 1);
        // The leading bits of the fraction, and whether a lower one is set.
        let n = t.min(HEAD);
        let head = self.bits(t - n, n);
        let more = || (0..t - n).step_by(64).any(|from| self.bits(from, (t - n - from).min(64)) != 0);
        let double = if biased == (1 << w) - 1 {
            if head == 0 && !more() { f64::INFINITY.to_bits() } else { f64::NAN.to_bits() }
        } else if biased > 0 {
            round(1 << HEAD | head << (HEAD - n) | u64::from(more()), biased as i64 - bias)
        } else if head == 0 || n < t {
            // From 128 bits on, what has no leading 1 is far below half of the least double.
            0
        } else {
            let first = head.ilog2();
            round(head << (HEAD - first), 1 - bias - i64::from(t - first))
        };
        f64::from_bits(sign | double)
    }
}

/// The bits of the double nearest to `significand` * 2^(`exponent` - 62); the significand's bit 62 is set.
fn round(significand: u64, exponent: i64) -> u64 {
    if exponent > 1023 {
        return f64::INFINITY.to_bits();
    }
    // A subnormal double has fewer bits, down to none: then the least double is nearest, or zero.
    let lost = HEAD - 52 + (-1022 - exponent).clamp(0, 60) as u32;
    if lost > HEAD + 1 {
        return 0;
    }
    let (kept, rest, half) = (significand >> lost, significand & ((1 << lost) - 1), 1 << (lost - 1));
    let kept = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // A carry out of the fraction counts up the exponent, as it should.
    if exponent < -1022 { kept } else { (((exponent + 1023) as u64) << 52) + kept - (1 << 52) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn real(data: &[u8], at: u64, size: u16) -> Real<'_> {
        Real { data, at, size, byte_order: ByteOrder::Little, reversed: false }
    }

    /// The bytes of a number given from its most significant bit on, least significant first.
    fn little(hex: &str) -> Vec<u8> {
        let pairs: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        pairs.into_iter().rev().collect()
    }

    fn value(hex: &str) -> f64 {
        let bytes = little(hex);
        real(&bytes, 0, bytes.len() as u16 * 8).value()
    }

    #[test]
    fn exponent_bits_follows_the_standard() {
        let sizes = [16, 32, 64, 128, 160, 192, 224, 256, 512, 1024];
        assert_eq!(sizes.map(exponent_bits), [5, 8, 11, 15, 16, 17, 18, 19, 23, 27]);
        assert_eq!(
            [16, 24, 32, 64, 96, 128, 144, 160].map(is_format),
            [true, false, true, true, false, true, false, true]
        );
        assert!(is_format(MOST_BITS.into()));
    }

    #[test]
    fn value_of_every_16_bit_number() {
        for pattern in 0..=u16::MAX {
            let (sign, exponent, fraction) = (pattern >> 15, i32::from(pattern >> 10 & 31), f64::from(pattern & 1023));
            let size = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            };
            let expected = if sign == 1 { -size } else { size };
            let found = real(&pattern.to_le_bytes(), 0, 16).value();
            assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()), "{pattern:04x}");
        }
    }

    #[test]
    fn value_of_128_bit_numbers() {
        let known = [
            ("3fff0000000000000000000000000000", 1.0),
            ("c0000000000000000000000000000000", -2.0),
            ("80000000000000000000000000000000", -0.0),
            ("7fff0000000000000000000000000000", f64::INFINITY),
            ("ffff0000000000000000000000000000", f64::NEG_INFINITY),
            // The nearest to pi and to 1/3.
            ("4000921fb54442d18469898cc51701b8", std::f64::consts::PI),
            ("3ffd5555555555555555555555555555", 1.0 / 3.0),
            // Halfway between two doubles: to the even one; a bit more: up; a bit less: down.
            ("3fff0000000000000800000000000000", 1.0),
            ("3fff0000000000000800000000000001", 1.0 + f64::EPSILON),
            ("3fff00000000000007ffffffffffffff", 1.0),
            ("3fff0000000000001800000000000000", 1.0 + 2.0 * f64::EPSILON),
            ("3ffffffffffffffff800000000000000", 2.0),
            // The largest double, halfway beyond it, and just below that.
            ("43feffffffffffff f000000000000000", f64::MAX),
            ("43feffffffffffff f800000000000000", f64::INFINITY),
            ("43feffffffffffff f7ffffffffffffff", f64::MAX),
            ("43ff0000000000000000000000000000", f64::INFINITY),
            // The least normal double and the largest below it, by way of a carry.
            ("3c010000000000000000000000000000", f64::MIN_POSITIVE),
            ("3c00ffffffffffff f000000000000000", f64::MIN_POSITIVE),
            ("3c00ffffffffffff e000000000000000", f64::from_bits(0x000f_ffff_ffff_ffff)),
            // The least double; halfway to it from 0, a bit more, and half of that.
            ("3bcd0000000000000000000000000000", f64::from_bits(1)),
            ("3bcc0000000000000000000000000000", 0.0),
            ("3bcc0000000000000000000000000001", f64::from_bits(1)),
            ("bbcc8000000000000000000000000000", -f64::from_bits(1)),
            ("3bcbffffffffffffffffffffffffffff", 0.0),
            ("3bce8000000000000000000000000000", f64::from_bits(3)),
            ("3bcd8000000000000000000000000000", f64::from_bits(2)),
            // Subnormal itself, and its least.
            ("0000ffffffffffffffffffffffffffff", 0.0),
            ("80000000000000000000000000000001", -0.0),
        ];
        for (hex, expected) in known {
            let found = value(&hex.replace(' ', ""));
            assert_eq!(found.to_bits(), expected.to_bits(), "{hex}: {found:e}, not {expected:e}");
        }
        assert!(value("7fff0000000000000000000000000001").is_nan());
        assert!(value("ffff8000000000000000000000000000").is_nan());
    }

    #[test]
    fn value_of_numbers_of_other_sizes() {
        // 160 bits: 16 of exponent; 256 bits: 19.
        assert_eq!(value(&format!("3fff8{}", "0".repeat(35))), 1.0);
        assert_eq!(value(&format!("bfffc{}", "0".repeat(35))), -1.5);
        assert_eq!(value(&format!("3ffff{}", "0".repeat(59))), 1.0);
        assert_eq!(value(&format!("400000{}1", "0".repeat(57))), 2.0);
    }

    proptest! {
        #[test]
        fn rounded_equals_the_machines_own_formats(bits: u64, few in 0u32..64) {
            // Small patterns are subnormal numbers.
            let pattern = bits >> few;
            let (single, double) = (pattern as u32, pattern);
            let found = real(&single.to_le_bytes(), 0, 32).rounded();
            let expected = f64::from(f32::from_bits(single));
            prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()));
            let found = real(&double.to_le_bytes(), 0, 64).rounded();
            let expected = f64::from_bits(double);
            prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()));
        }

        #[test]
        fn value_is_independent_of_order_and_place(number: [u8; 16], at in 0u64..24, reversed: bool) {
            let expected = real(&number, 0, 128);
            for byte_order in ByteOrder::BOTH {
                let mut data = [0xa5u8; 20];
                for i in 0..128 {
                    let bit = number[i / 8] >> (i % 8) & 1;
                    // Bit i of the number is the i-th from its least significant end; `reversed` counts from the other.
                    let i = if reversed { 127 - i } else { i } as u64;
                    let (byte, shift) = match byte_order {
                        ByteOrder::Little => ((at + i) / 8, (at + i) % 8),
                        ByteOrder::Big => ((at + 127 - i) / 8, 7 - (at + 127 - i) % 8),
                    };
                    let byte = byte as usize;
                    data[byte] = data[byte] & !(1 << shift) | bit << shift;
                }
                let found = Real { data: &data, at, size: 128, byte_order, reversed };
                prop_assert!(found.groups().eq(expected.groups()));
                let (found, expected) = (found.value(), expected.value());
                prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()));
            }
        }
    }
}
