//! Databases exported as tables, and imported from them.

use super::database::Databases;
use crate::base::ctx::Ctx;
use crate::base::file::Output;
use std::path::{Path, PathBuf};

impl Databases {
    /// Write the tables of all databases below a folder. A recording that several have is the same files.
    pub fn export(&self, folder: &Path, ctx: &Ctx) -> anyhow::Result<()> {
        #[cfg(feature = "parquet")]
        for (_, database) in &self.opened {
            crate::saved::parquet::export(database, folder, ctx)?;
        }
        #[cfg(not(feature = "parquet"))]
        let _ = (folder, ctx);
        Ok(())
    }
}

/// Write the database of exported tables below folders.
pub fn import(folders: &[PathBuf], output: Output, ctx: &Ctx) -> anyhow::Result<()> {
    #[cfg(feature = "parquet")]
    crate::saved::parquet::import(folders, output, ctx)?;
    #[cfg(not(feature = "parquet"))]
    let _ = (folders, output, ctx);
    Ok(())
}
