//! How OTF2 writes numbers, texts, records and chunks, in either byte order (docs/OTF2-FACTS.md, sections 2 to 4).

/// OTF2's mark of an undefined reference.
pub const UNDEFINED: u32 = u32::MAX;

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    /// The byte by which a file says it.
    pub fn mark(self) -> u8 {
        match self {
            ByteOrder::Little => 0x42,
            ByteOrder::Big => 0x23,
        }
    }
}

/// Bytes in the making.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    pub data: Vec<u8>,
    order: ByteOrder,
}

impl Bytes {
    pub fn new(order: ByteOrder) -> Bytes {
        Bytes { data: Vec::new(), order }
    }

    pub fn u8(mut self, value: u8) -> Self {
        self.data.push(value);
        self
    }

    /// A number in this many bytes.
    pub fn full(mut self, value: u64, width: usize) -> Self {
        put_full(value, width, self.order, &mut self.data);
        self
    }

    /// A number by its length and its bytes.
    pub fn packed(mut self, value: u64) -> Self {
        put_packed(value, self.order, &mut self.data);
        self
    }

    /// Several of them.
    pub fn packs(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.packed(*value))
    }

    pub fn undefined(self) -> Self {
        self.u8(0xff)
    }

    pub fn string(mut self, text: &str) -> Self {
        self.data.extend(text.bytes());
        self.u8(0)
    }

    /// A record with a length, of eight bytes where it is `long` or does not fit in one.
    pub fn record(mut self, kind: u8, payload: &Bytes, long: bool) -> Self {
        put_record(kind, &payload.data, long, self.order, &mut self.data);
        self
    }
}

fn put_full(value: u64, width: usize, order: ByteOrder, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match order {
        ByteOrder::Little => out.extend(&bytes[..width]),
        ByteOrder::Big => out.extend(bytes[..width].iter().rev()),
    }
}

fn put_packed(value: u64, order: ByteOrder, out: &mut Vec<u8>) {
    let width = (64 - value.leading_zeros()).div_ceil(8) as usize;
    out.push(width as u8);
    put_full(value, width, order, out);
}

fn put_record(kind: u8, payload: &[u8], long: bool, order: ByteOrder, out: &mut Vec<u8>) {
    out.push(kind);
    match u8::try_from(payload.len()) {
        Ok(short) if short < 0xff && !long => out.push(short),
        _ => {
            out.push(0xff);
            put_full(payload.len() as u64, 8, order, out);
        }
    }
    out.extend(payload);
}

pub(super) fn packed32(value: u32, out: &mut Vec<u8>) {
    if value == UNDEFINED { out.push(0xff) } else { put_packed(u64::from(value), ByteOrder::Little, out) }
}

pub(super) fn packed64(value: u64, out: &mut Vec<u8>) {
    if value == u64::MAX { out.push(0xff) } else { put_packed(value, ByteOrder::Little, out) }
}

/// Type, length, payload.
pub(super) fn record(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    put_record(kind, payload, false, ByteOrder::Little, out);
}

/// A file of chunks; a record never straddles two.
pub struct Chunks {
    pub(super) bytes: Vec<u8>,
    size: usize,
    start: usize,
    order: ByteOrder,
}

impl Chunks {
    pub fn new(size: usize, order: ByteOrder) -> Self {
        let mut chunks = Chunks { bytes: Vec::new(), size, start: 0, order };
        chunks.begin();
        chunks
    }

    fn begin(&mut self) {
        self.start = self.bytes.len();
        self.bytes.extend([3, self.order.mark()]);
        // Numbers of the first and last event, which readers do not need.
        self.bytes.extend([0; 16]);
    }

    /// True where this many bytes have room in the chunk.
    pub(super) fn fits(&self, length: usize) -> bool {
        self.bytes.len() - self.start + length + 2 <= self.size
    }

    /// Begin the next chunk.
    pub(super) fn turn(&mut self) {
        self.bytes.resize(self.start + self.size, 0);
        self.begin();
    }

    /// Add bytes that belong together.
    pub fn push(&mut self, record: &[u8]) {
        if !self.fits(record.len()) {
            self.turn();
        }
        self.bytes.extend(record);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([2, 1]);
        self.bytes
    }
}
