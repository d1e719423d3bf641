//! Write the first inputs of every target into `corpus/`: `cargo run --example seeds`, in `fuzz/`.

use std::path::Path;
use std::{fs, io};
use whyslow_fuzz::{TARGETS, seeds};

fn main() -> io::Result<()> {
    for (target, _) in TARGETS {
        let folder = Path::new("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds::seeds(target).iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
