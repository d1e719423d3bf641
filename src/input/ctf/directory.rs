//! Trace directories to their schemas: several metadata files, read with what they have in common.

use super::schema::Schema;
use super::tsdl::{Blocks, Known};
use super::{OpenError, metadata};
use crate::input::mapped::Mapped;
use foldhash::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trace directory whose metadata was read.
#[derive(Debug)]
pub struct Directory {
    pub(super) path: PathBuf,
    pub(super) schema: Arc<Schema>,
}

impl Directory {
    /// Read the metadata of some directories. Equal bytes are read once; what equal event blocks say is taken over from the
    /// first text that has some.
    pub fn read_all(paths: Vec<PathBuf>) -> Vec<Result<Directory, OpenError>> {
        let files: Vec<_> = paths.iter().map(|path| Mapped::open(&path.join("metadata"))).collect();
        let mut first: HashMap<&[u8], usize> = HashMap::default();
        let mut texts = Vec::with_capacity(files.len());
        for (i, file) in files.iter().enumerate() {
            texts.push(match file {
                Ok(file) => Read::of(file, *first.entry(file.bytes()).or_insert(i), i),
                Err(e) => Read::Wrong(e.to_string()),
            });
        }
        let mut schemas: Vec<Result<Arc<Schema>, String>> = Vec::with_capacity(texts.len());
        let mut known = None;
        for text in &texts {
            let (schema, found) = text.schema(&schemas, None);
            let taught = found.zip(schema.as_ref().ok()).and_then(|(found, schema)| Known::new(found, schema));
            schemas.push(schema);
            if taught.is_some() {
                known = taught;
                break;
            }
        }
        for text in texts.iter().skip(schemas.len()) {
            let schema = text.schema(&schemas, known.as_ref()).0;
            schemas.push(schema);
        }
        let directory = |(path, schema): (PathBuf, Result<Arc<Schema>, String>)| match schema {
            Ok(schema) => Ok(Directory { path, schema }),
            Err(what) => Err(OpenError(format!("{}: {what}", path.join("metadata").display()))),
        };
        paths.into_iter().zip(schemas).map(directory).collect()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The uuid of the trace: equal in all chunks of a session.
    pub fn uuid(&self) -> Option<&str> {
        self.schema.uuid.as_deref()
    }
}

/// A metadata file, on the way to its schema.
enum Read<'f> {
    Text(metadata::Text<'f>),
    /// Equal to that of another place in the list.
    Same(usize),
    /// What is wrong with it.
    Wrong(String),
}

impl<'f> Read<'f> {
    /// The file at position `i`, whose bytes are met for the first time at position `first`.
    fn of(file: &'f Mapped, first: usize, i: usize) -> Read<'f> {
        if first < i {
            return Read::Same(first);
        }
        metadata::Text::of(file.bytes()).map_or_else(Read::Wrong, Read::Text)
    }

    /// Its schema, where those of the files before it are known.
    fn schema<'t>(
        &'t self,
        before: &[Result<Arc<Schema>, String>],
        known: Option<&'t Known<'t>>,
    ) -> (Result<Arc<Schema>, String>, Option<Blocks<'t>>) {
        match self {
            Read::Text(text) => match metadata::read(text, known) {
                Ok((schema, found)) => (Ok(Arc::new(schema)), found),
                Err(what) => (Err(what), None),
            },
            Read::Same(first) => (before.get(*first).cloned().unwrap_or_else(|| Err(String::new())), None),
            Read::Wrong(what) => (Err(what.clone()), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: &str = "typealias integer { size = 32; align = 8; signed = 0; } := u32;\n";
    const EVENTS: &str = "event { name = \"a\"; id = 0; stream_id = 0; fields := struct { u32 len; u32 x[len]; }; };\n\
         event { name = \"b\"; id = 1; stream_id = 0; fields := struct { u32 y; u32 z[stream.packet.context.n]; }; };\n\
         event { name = \"c\"; id = 2; stream_id = 0; fields := struct { u32 w[env.many]; }; };\n";

    fn text(host: &str, many: u32, types: &str, events: &str) -> String {
        format!(
            "/* CTF 1.8 */\n{types}trace {{ major = 1; minor = 8; byte_order = le; }};\n\
             env {{ hostname = \"{host}\"; many = {many}; }};\n\
             stream {{ event.header := struct {{ u32 id; }}; packet.context := struct {{ u32 n; }}; }};\n{events}"
        )
    }

    /// Reads texts from files together and each alone; the schemas must be equal but for the numbers of slots.
    fn together_as_alone(texts: &[String]) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let write = |(i, text): (usize, &String)| {
            let path = folder.path().join(i.to_string());
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("metadata"), text).unwrap();
            path
        };
        let paths: Vec<PathBuf> = texts.iter().enumerate().map(write).collect();
        let together = Directory::read_all(paths.clone());
        let mut shared = 0;
        for (path, directory) in paths.iter().zip(&together) {
            let alone = Directory::read_all(vec![path.clone()]).pop().unwrap();
            let (Ok(directory), Ok(alone)) = (directory, &alone) else {
                assert_eq!(directory.as_ref().err().map(|e| &e.0), alone.as_ref().err().map(|e| &e.0));
                continue;
            };
            let fields = |d: &Directory| format!("{:?}", d.schema.streams);
            let digits = |text: String| text.replace(|c: char| c.is_ascii_digit(), "");
            assert_eq!(digits(fields(directory)), digits(fields(alone)));
            let first = together.first().and_then(|d| d.as_ref().ok()).unwrap();
            let same = |(a, b): &(&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
            if !Arc::ptr_eq(&directory.schema, &first.schema) {
                let (theirs, ours) = (&directory.schema.streams[0].events, &first.schema.streams[0].events);
                shared += theirs.iter().zip(ours).filter(same).count();
            }
        }
        shared
    }

    #[test]
    fn equal_event_blocks_are_taken_over() {
        let texts = [text("one", 3, TYPES, EVENTS), text("another", 5, TYPES, EVENTS)];
        // `b` has its length in the packet's context, `c` in the environment: a text with such blocks gives none.
        assert_eq!(together_as_alone(&texts), 0);
        let alone = EVENTS.lines().next().unwrap();
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, alone), text("two", 5, TYPES, EVENTS)]), 1);
        assert_eq!(together_as_alone(&[texts[0].clone(), texts[0].clone()]), 0);
    }

    #[test]
    fn where_types_differ_nothing_is_taken_over() {
        let wide = TYPES.replace("32", "64");
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, EVENTS), text("one", 3, &wide, EVENTS)]), 0);
        let late = format!("{EVENTS}{}", TYPES.replace("u32", "late"));
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, &late), text("two", 3, TYPES, &late)]), 0);
    }

    #[test]
    fn an_error_behind_known_blocks_is_told_with_its_place() {
        let broken = format!("{EVENTS}event {{ name = \"d\"; id = 3; stream_id = 0; fields := struct {{ u32 }}; }};");
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, EVENTS), text("two", 3, TYPES, &broken)]), 0);
    }
}
