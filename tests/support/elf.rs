//! Small ELF files that tests write: a text section, and as asked a build id, symbols and a debug link.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

/// The address of the text in the file's own addresses.
pub const TEXT: u64 = 0x1000;
/// Its size.
pub const SIZE: u64 = 0x1000;

/// A file in the making.
#[derive(Clone, Debug, Default)]
pub struct Elf {
    pub build_id: Option<Vec<u8>>,
    /// Functions: first address, bytes, name.
    pub symbols: Vec<(u64, u64, String)>,
    pub debug_link: Option<(String, u32)>,
    /// Its text is there in name only, as in separate debug files.
    pub debug: bool,
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    data: Vec<u8>,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

impl Elf {
    pub fn function(mut self, address: u64, size: u64, name: &str) -> Self {
        self.symbols.push((address, size, name.to_owned()));
        self
    }

    pub fn id(mut self, id: &[u8]) -> Self {
        self.build_id = Some(id.to_vec());
        self
    }

    fn sections(&self) -> Vec<Section> {
        let plain = |name, kind, data: Vec<u8>| Section {
            size: data.len() as u64,
            name,
            kind,
            flags: 0,
            address: 0,
            data,
            link: 0,
            info: 0,
            entry: 0,
        };
        let text = if self.debug { (8, Vec::new()) } else { (1, vec![0x90; SIZE as usize]) };
        let mut all = vec![plain("", 0, Vec::new()), plain(".text", text.0, text.1)];
        (all[1].flags, all[1].address, all[1].size) = (6, TEXT, SIZE);
        if let Some(id) = &self.build_id {
            let mut note = [4u32, id.len() as u32, 3].map(u32::to_le_bytes).concat();
            note.extend(b"GNU\0");
            note.extend(id);
            note.resize(note.len().div_ceil(4) * 4, 0);
            all.push(plain(".note.gnu.build-id", 7, note));
        }
        if !self.symbols.is_empty() {
            let mut names = vec![0];
            let mut table = vec![0; 24];
            for (address, size, name) in &self.symbols {
                table.extend((names.len() as u32).to_le_bytes());
                // A global function in section 1.
                table.extend([0x12, 0, 1, 0]);
                table.extend(address.to_le_bytes());
                table.extend(size.to_le_bytes());
                names.extend(name.bytes().chain([0]));
            }
            let strings = all.len() as u32 + 1;
            all.push(Section { link: strings, info: 1, entry: 24, ..plain(".symtab", 2, table) });
            all.push(plain(".strtab", 3, names));
        }
        if let Some((name, crc)) = &self.debug_link {
            let mut link: Vec<u8> = name.bytes().chain([0]).collect();
            link.resize(link.len().div_ceil(4) * 4, 0);
            link.extend(crc.to_le_bytes());
            all.push(plain(".gnu_debuglink", 1, link));
        }
        all
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut sections = self.sections();
        let mut names = Vec::new();
        let mut at = Vec::new();
        for name in sections.iter().map(|s| s.name).chain([".shstrtab"]) {
            at.push(names.len() as u32);
            names.extend(name.bytes().chain([0]));
        }
        let size = names.len() as u64;
        sections.push(Section {
            name: ".shstrtab",
            kind: 3,
            flags: 0,
            address: 0,
            data: names,
            size,
            link: 0,
            info: 0,
            entry: 0,
        });
        const HEAD: usize = 64 + 56;
        let mut data = Vec::new();
        let mut table = Vec::new();
        for (section, name) in sections.iter().zip(at) {
            let offset = (HEAD + data.len()) as u64;
            data.extend(&section.data);
            data.resize(data.len().div_ceil(8) * 8, 0);
            table.extend(name.to_le_bytes());
            table.extend(section.kind.to_le_bytes());
            for n in [section.flags, section.address, offset, section.size] {
                table.extend(n.to_le_bytes());
            }
            table.extend(section.link.to_le_bytes());
            table.extend(section.info.to_le_bytes());
            table.extend(4u64.to_le_bytes());
            table.extend(section.entry.to_le_bytes());
        }
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([3u16, 62].map(u16::to_le_bytes).concat());
        file.extend(1u32.to_le_bytes());
        for n in [0, 64, (HEAD + data.len()) as u64] {
            file.extend(n.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        let counts = [64, 56, 1, 64, sections.len() as u16, sections.len() as u16 - 1];
        file.extend(counts.map(u16::to_le_bytes).concat());
        // One segment from address 0 on.
        file.extend([1u32, 5].map(u32::to_le_bytes).concat());
        for n in [0, 0, 0, TEXT + SIZE, TEXT + SIZE, 0x1000] {
            file.extend(n.to_le_bytes());
        }
        file.extend(data);
        file.extend(table);
        file
    }
}

/// The checksum of debug links.
pub fn checksum(bytes: &[u8]) -> u32 {
    let step = |c: u32| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 };
    let byte = |c: u32, b: &u8| (0..8).fold(c ^ u32::from(*b), |c, _| step(c));
    !bytes.iter().fold(!0, byte)
}
