//! Databases exported as tables.

use super::database::Databases;
use crate::base::ctx::Ctx;
use std::path::Path;

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
