//! Write the first inputs of every target from the decode cases: `cargo run --example seeds`, in `fuzz/`.

use std::path::Path;
use std::{fs, io};

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<char> =
        text.lines().flat_map(|l| l.split('#').next().unwrap_or("").chars()).filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).filter_map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).ok()).collect()
}

fn seed(target: &str, name: &str, input: &[u8]) -> io::Result<()> {
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), input)
}

fn main() -> io::Result<()> {
    for entry in fs::read_dir("../fixtures/ctf")? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "case") {
            continue;
        }
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path)?;
        let (mut metadata, mut stream) = (Vec::new(), Vec::new());
        for part in text.split("\n--- ").skip(1) {
            let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
            match heading {
                "metadata" => metadata = body.replace("%\n", "\x1e\n").into_bytes(),
                "metadata hex" => metadata = bytes(body),
                _ if heading.starts_with("stream ") && stream.is_empty() => stream = bytes(body),
                _ => {}
            }
        }
        if name.contains("-2-") {
            // The target writes the preamble itself.
            let second = metadata.iter().skip(1).position(|b| *b == 0x1e).map_or(0, |at| at + 1);
            seed("metadata_json", &name, metadata.get(second..).unwrap_or(&[]))?;
        } else {
            seed("metadata_text", &name, &metadata)?;
        }
        seed("schema_and_packet", &name, &[&metadata[..], &[0], &stream[..]].concat())?;
        for choice in [0u8, 1] {
            seed("packet", &format!("{name}-{choice}"), &[&[choice], &stream[..]].concat())?;
        }
    }
    Ok(())
}
