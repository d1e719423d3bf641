//! Reads the metadata of trace directories into schemas; what several metadata files have in common is read once.

use super::metadata::{self, MetadataFileError};
use super::schema::Schema;
use super::tsdl::{Blocks, Known};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::mapped::Mapped;
use crate::base::parallel::in_order;
use crate::input::error::{OpenError, Unreadable};
use foldhash::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A trace directory whose metadata was read.
#[derive(Debug)]
pub struct Directory {
    pub(super) path: PathBuf,
    pub(super) schema: Arc<Schema>,
}

impl Directory {
    /// Read the metadata of some directories. Equal files are parsed once; event blocks that are equal to those of the
    /// first text with events are reused. The packets of all texts are joined while the first text is parsed; the other
    /// texts are parsed in parallel.
    pub fn read_all(paths: Vec<PathBuf>, ctx: &Ctx) -> Result<Vec<Result<Directory, OpenError>>, Cancelled> {
        let files: Vec<_> = paths.iter().map(|path| open_metadata(path)).collect();
        let mut first: HashMap<&[u8], usize> = HashMap::default();
        let mut firsts = Vec::with_capacity(files.len());
        for (i, file) in files.iter().enumerate() {
            firsts.push(file.as_ref().map_or(i, |file| *first.entry(file.bytes()).or_insert(i)));
        }
        let texts: Vec<OnceLock<Read>> = files.iter().map(|_| OnceLock::new()).collect();
        let text = |i: usize| {
            let read = || match (files.get(i), firsts.get(i)) {
                (Some(Ok(file)), Some(first)) => Read::of(file, *first, i),
                (Some(Err(error)), _) => Read::Failed(error.clone()),
                _ => Read::Same,
            };
            texts.get(i).map(|text| text.get_or_init(read))
        };
        let mut schemas: Vec<Option<SchemaResult>> = Vec::with_capacity(files.len());
        let mut parsed = None;
        let begin = |i: usize| text(i).filter(|_| i == 0).map(|text| text.schema(None));
        in_order(ctx, files.len(), begin, |_, begun| parsed = begun.or(parsed.take()))?;
        let mut known = None;
        while known.is_none() && schemas.len() < files.len() {
            let read = |i: usize| text(i).map(|text| text.schema(None));
            let Some((schema, found)) = parsed.take().or_else(|| read(schemas.len())) else { break };
            let read = schema.as_ref().and_then(|schema| schema.as_ref().ok());
            known = found.zip(read).and_then(|(found, schema)| Known::new(found, schema));
            schemas.push(schema);
        }
        let done = schemas.len();
        let rest = |i: usize| text(done + i).map(|text| text.schema(known.as_ref()).0);
        in_order(ctx, files.len() - done, rest, |_, schema| schemas.extend(schema))?;
        // A text that is equal to an earlier one gets its schema.
        for (i, first) in firsts.iter().enumerate().filter(|(i, first)| *first < i) {
            let same = schemas.get(*first).cloned();
            schemas.get_mut(i).into_iter().zip(same).for_each(|(schema, same)| *schema = same);
        }
        let directory = |(path, schema): (PathBuf, Option<SchemaResult>)| match schema? {
            Ok(schema) => Some(Ok(Directory { path, schema })),
            Err(error) => Some(Err(Unreadable::Metadata(error).at(&path.join("metadata")))),
        };
        Ok(paths.into_iter().zip(schemas).filter_map(directory).collect())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The uuid of the trace: equal in all chunks of a session.
    pub fn uuid(&self) -> Option<&str> {
        self.schema.uuid.as_deref()
    }
}

fn open_metadata(path: &Path) -> Result<Mapped, Arc<MetadataFileError>> {
    Mapped::open(&path.join("metadata")).map_err(|error| Arc::new(MetadataFileError::Io(error)))
}

/// The schema of a metadata file; directories with equal files share it.
type SchemaResult = Result<Arc<Schema>, Arc<MetadataFileError>>;

/// A metadata file before its schema is known.
enum Read {
    Text(metadata::Text),
    /// Equal to an earlier file of the list.
    Same,
    /// It cannot be read.
    Failed(Arc<MetadataFileError>),
}

impl Read {
    /// The file at position `i`; `first` is the position of the first file with the same bytes.
    fn of(file: &Mapped, first: usize, i: usize) -> Read {
        if first < i {
            return Read::Same;
        }
        metadata::Text::of(file.bytes()).map_or_else(|error| Read::Failed(Arc::new(error)), Read::Text)
    }

    /// Its schema, and the blocks that other texts may reuse; no schema where the text is equal to an earlier one,
    /// because the caller reuses that one's schema.
    fn schema<'t>(&'t self, known: Option<&'t Known<'t>>) -> (Option<SchemaResult>, Option<Blocks<'t>>) {
        match self {
            Read::Text(text) => match metadata::read(text, known) {
                Ok((schema, found)) => (Some(Ok(Arc::new(schema))), found),
                Err(error) => (Some(Err(Arc::new(error))), None),
            },
            Read::Same => (None, None),
            Read::Failed(error) => (Some(Err(error.clone())), None),
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
        let together = Directory::read_all(paths.clone(), &Ctx::new(3)).unwrap();
        let mut shared = 0;
        for (path, directory) in paths.iter().zip(&together) {
            let alone = Directory::read_all(vec![path.clone()], &Ctx::new(1)).unwrap().pop().unwrap();
            let (Ok(directory), Ok(alone)) = (directory, &alone) else {
                assert_eq!(
                    directory.as_ref().err().map(ToString::to_string),
                    alone.as_ref().err().map(ToString::to_string)
                );
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
    fn read_all_reuses_equal_event_blocks() {
        let texts = [text("one", 3, TYPES, EVENTS), text("another", 5, TYPES, EVENTS)];
        // `b` has its length in the packet's context, `c` in the environment: no block of such a text is reused.
        assert_eq!(together_as_alone(&texts), 0);
        let alone = EVENTS.lines().next().unwrap();
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, alone), text("two", 5, TYPES, EVENTS)]), 1);
        assert_eq!(together_as_alone(&[texts[0].clone(), texts[0].clone()]), 0);
    }

    #[test]
    fn read_all_reuses_nothing_where_types_differ() {
        let wide = TYPES.replace("32", "64");
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, EVENTS), text("one", 3, &wide, EVENTS)]), 0);
        let late = format!("{EVENTS}{}", TYPES.replace("u32", "late"));
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, &late), text("two", 3, TYPES, &late)]), 0);
    }

    #[test]
    fn read_all_locates_errors_after_reused_blocks() {
        let broken = format!("{EVENTS}event {{ name = \"d\"; id = 3; stream_id = 0; fields := struct {{ u32 }}; }};");
        assert_eq!(together_as_alone(&[text("one", 3, TYPES, EVENTS), text("two", 3, TYPES, &broken)]), 0);
    }
}
