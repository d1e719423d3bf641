//! Bytes to records: which formats there are, and what a record is before anybody knows what it means.
//!
//! [`record`] is the face that `event/` sees; each format has a folder.

pub mod ctf;
pub mod otf2;
pub mod record;
