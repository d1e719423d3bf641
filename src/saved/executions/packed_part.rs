//! A part of a database as bytes: of a model, or of those of its executions that are kept.
//!
//! In: a model. Out: the tables and sections of the part, with the digest by which it is known again. Cost: one pass
//! over the executions. ALGORITHMS.md sections 6.4 and 6.6.

use super::columns::write as write_columns;
use super::recordings::StoredPart;
use super::rows::{pack_executions, pack_own};
use super::tables::{self, UsedEntries};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::digest::{Digest, Digester};
use crate::base::pack::Pack;
use crate::model::Model;
use crate::model::join::{self, LabelNames};
use crate::model::sample;

/// The sections of a part, and their digest.
pub(super) struct PackedPart {
    pub tables: Vec<u8>,
    pub used: Vec<u8>,
    /// In the order of `OF_PART`.
    pub sections: [Vec<u8>; 4],
    pub content: Digest,
}

impl PackedPart {
    /// Of a model whose tables are canonical and its own.
    pub fn new(model: &Model, task: &str) -> PackedPart {
        let mut content = Digester::default();
        content.add_whole(task.as_bytes());
        let mut packed = |pack: &dyn Fn(&Model, &mut Pack)| {
            let mut bytes = Pack::default();
            pack(model, &mut bytes);
            content.add_whole(&bytes.0);
            bytes.0
        };
        let tables = packed(&tables::pack);
        let sections = [
            packed(&tables::pack_part),
            packed(&|model, pack| pack_executions(&model.executions, pack)),
            packed(&|model, pack| pack_own(&model.executions, pack)),
            packed(&write_columns),
        ];
        let mut used = Pack::default();
        UsedEntries::all(model.names.len(), model.who.len(), model.contexts.len()).pack(&mut used);
        PackedPart { tables, used: used.0, sections, content: content.finish() }
    }

    /// A part of the executions of a model, of those that are kept where it was weighed. A sample has the digest of the
    /// executions that it was taken of, where they are not known any more the `known` one: it is no other recording.
    pub fn of_kept(
        model: Model,
        task: String,
        known: Option<Digest>,
        ctx: &Ctx,
    ) -> Result<(StoredPart, PackedPart), Cancelled> {
        let mut model = join::canonical(model, LabelNames::LeftOut, ctx)?;
        let executions = known.unwrap_or_else(|| digest_of_executions(&model));
        if sample::is_weighed(&model) {
            model = join::canonical(sample::kept(model), LabelNames::LeftOut, ctx)?;
        }
        let packed = PackedPart::new(&model, &task);
        let part = StoredPart {
            task,
            content: packed.content,
            executions,
            count: model.executions.len() as u64,
            whole: model.executions.count(),
            labels: model.traces.into_iter().map(|trace| trace.label).collect(),
            notices: model.notices,
        };
        Ok((part, packed))
    }
}

/// The digest of a part as it is in a database, whose tables may have marks of other parts.
#[cfg(feature = "parquet")]
pub(super) fn digest_of_sections<'a>(tables: &[u8], sections: impl IntoIterator<Item = &'a Vec<u8>>) -> Digest {
    let mut digester = Digester::default();
    digester.add_whole(tables);
    sections.into_iter().for_each(|bytes| digester.add_whole(bytes));
    digester.finish()
}

/// The digest of who ran each execution, from when to when.
fn digest_of_executions(model: &Model) -> Digest {
    let executions = &model.executions;
    let mut digester = Digester::default();
    for (who, span) in executions.who.iter().zip(executions.spans()) {
        let Some(thread) = model.who.get(who.index()) else { continue };
        digester.add_whole(model.names.get(thread.host).as_bytes());
        digester.add(&[thread.pid.to_le_bytes(), thread.tid.to_le_bytes()].concat());
        digester.add(&[span.start, span.end].map(|at| at.ns().to_le_bytes()).concat());
    }
    digester.finish()
}
