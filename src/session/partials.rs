//! Partial results: computed from databases, united, and compared.
//!
//! In: databases and two groups, or files of partial results. Out: their sums, as a file or as a comparison. Databases
//! are read one part after the other; in memory are one part, and the totals of all hosts.

use super::UsageError;
use super::database::Databases;
use crate::base::ctx::Ctx;
use crate::base::digest::Digester;
use crate::base::figure;
use crate::base::file::Output;
use crate::base::packed::bytes_of;
use crate::base::spelling::suggest;
use crate::compare::filter::Filter;
use crate::compare::partials::{FleetSums, PartialComparison, fleet_groups, fleet_members, groups_by_length};
use crate::input::Argument;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::model::partials::{DurationHistogram, totals};
use crate::saved::executions::recordings::StoredPart;
use crate::saved::partials::{FoundTotals, GroupTexts, PartialSums, PartialsFile};
use crate::saved::{SavedFileError, SavedKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which partial results are wanted.
#[derive(Debug, Default)]
pub struct PartialRequest<'a> {
    /// Tasks; none for all.
    pub tasks: Vec<&'a str>,
    pub slow: Vec<Filter>,
    pub fast: Vec<Filter>,
    /// A file of united partial results, by whose lengths executions are divided.
    pub by: Option<&'a Path>,
}

/// Groups by task.
enum FleetGroups {
    /// The same of every task; none where both are empty.
    Same([Vec<Filter>; 2]),
    Own(BTreeMap<String, [Vec<Filter>; 2]>),
}

impl FleetGroups {
    fn new(request: &PartialRequest<'_>, ctx: &Ctx) -> anyhow::Result<FleetGroups> {
        let Some(path) = request.by else {
            let groups = fleet_groups(&request.slow, &request.fast);
            return Ok(FleetGroups::Same(groups.map_err(|error| UsageError(error.to_string()))?));
        };
        let file = [PartialsFile::open(path)?];
        let sums = PartialSums::of_files(&file, ctx)?;
        let mut own = BTreeMap::new();
        for (position, task) in sums.tasks().enumerate() {
            let texts = sums.task(position).map(|(groups, _)| groups.clone()).unwrap_or_default();
            if !texts.is_empty() {
                own.insert(task.to_owned(), [parsed(path, &texts.slow)?, parsed(path, &texts.fast)?]);
            } else if let Some(groups) = groups_by_length(&lengths(&sums, position, ctx)?) {
                own.insert(task.to_owned(), groups);
            }
        }
        Ok(FleetGroups::Own(own))
    }

    fn of(&self, task: &str) -> Option<&[Vec<Filter>; 2]> {
        match self {
            FleetGroups::Same(groups) => Some(groups),
            FleetGroups::Own(own) => own.get(task),
        }
    }
}

/// The filters of a file.
fn parsed(path: &Path, texts: &[String]) -> anyhow::Result<Vec<Filter>> {
    let parse = |text: &String| text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()));
    texts.iter().map(parse).collect()
}

/// The executions of a task, by its position, by length on all hosts.
fn lengths(sums: &PartialSums<'_>, task: usize, ctx: &Ctx) -> Result<DurationHistogram, SavedFileError> {
    let mut all = DurationHistogram::default();
    sums.each_host(task, ctx, |_, totals| {
        all.add(&totals.by_length);
        Ok::<(), SavedFileError>(())
    })?;
    Ok(all)
}

fn texts(filters: &[Filter]) -> Vec<String> {
    filters.iter().map(Filter::to_string).collect()
}

impl Databases {
    /// The partial results of the executions of all databases, with what is to be said about them, a line each.
    pub fn partials(
        &self,
        request: &PartialRequest<'_>,
        ctx: &Ctx,
    ) -> anyhow::Result<(PartialSums<'static>, Vec<String>)> {
        let tasks = request.tasks.iter().map(|task| self.task(Some(task))).collect::<anyhow::Result<Vec<String>>>()?;
        let groups = FleetGroups::new(request, ctx)?;
        let (mut found, mut without) = (Vec::new(), BTreeMap::<String, u64>::new());
        for (_, database) in &self.opened {
            let task_is_wanted = |task: &String| tasks.is_empty() || tasks.contains(task);
            database.each_part(ctx, |(_, part), _, model| {
                if !task_is_wanted(&part.task) {
                    return Ok(());
                }
                let Some(groups) = groups.of(&part.task) else {
                    *without.entry(part.task.clone()).or_default() += part.whole;
                    return Ok(());
                };
                found.push((of_part(&model, part, groups)?, database.path().to_owned()));
                Ok::<(), anyhow::Error>(())
            })?;
        }
        let line = |(task, executions): (&String, &u64)| {
            let executions = figure::plural(*executions, "execution");
            format!("`{task}`: --groups has no groups of it: its {executions} are left out")
        };
        let mut lines: Vec<String> = without.iter().map(line).collect();
        if found.is_empty() {
            anyhow::bail!("{}: no executions for partial results{}", self.title(), named(&lines));
        }
        let sums = PartialSums::of_found(found)?;
        lines.extend(repeated(&sums));
        Ok((sums, lines))
    }
}

/// The first of some lines, after a colon.
fn named(lines: &[String]) -> String {
    lines.first().map_or_else(String::new, |line| format!(": {line}"))
}

/// The totals of a part of a database.
fn of_part(model: &Model, part: &StoredPart, groups: &[Vec<Filter>; 2]) -> anyhow::Result<FoundTotals> {
    let is_by_label = groups.iter().flatten().any(|filter| filter.metric == Metric::Trace);
    let mut source = part.content;
    if is_by_label {
        // Under another label the same executions are in other groups.
        let mut digester = Digester::default();
        digester.add_whole(&bytes_of(&source));
        digester.add_whole(&bytes_of(&part.labels));
        source = digester.finish();
    }
    let none = groups.iter().all(Vec::is_empty);
    let members: [Vec<ExecutionId>; 2] = if none {
        Default::default()
    } else {
        fleet_members(model, groups).map_err(|error| UsageError(error.to_string()))?
    };
    let hosts = totals(model, source, [&members[0], &members[1]]);
    let groups = GroupTexts { slow: texts(&groups[0]), fast: texts(&groups[1]) };
    Ok(FoundTotals::new(part.task.clone(), groups, model, hosts))
}

/// Totals that were there before, a line for each file.
fn repeated(sums: &PartialSums<'_>) -> Vec<String> {
    let line = |(path, count): (&PathBuf, &usize)| {
        let what = figure::plural(*count as u64, "total");
        let verb = if *count == 1 { "is" } else { "are" };
        format!("{}: {what} of a task on a host {verb} in others: each counts once", path.display())
    };
    sums.repeated.iter().map(line).collect()
}

/// The files of partial results of a command line.
pub struct PartialFiles {
    files: Vec<PartialsFile>,
}

impl PartialFiles {
    /// Open what is named, if it is partial results.
    pub(super) fn open(arguments: &[Argument]) -> anyhow::Result<Option<PartialFiles>> {
        let is_partial = |argument: &&Argument| SavedKind::Partials.is_of(&argument.path);
        let Some(one) = arguments.iter().find(is_partial) else { return Ok(None) };
        if let Some(other) = arguments.iter().find(|argument| !is_partial(argument)) {
            anyhow::bail!(
                "{}: no partial results, and {} has them: build those of the other as well (`whyslow build --partial`)",
                other.path.display(),
                one.path.display()
            );
        }
        let files = arguments.iter().map(|argument| PartialsFile::open(&argument.path)).collect::<Result<_, _>>()?;
        Ok(Some(PartialFiles { files }))
    }

    /// The files as the user named them.
    pub fn title(&self) -> String {
        self.files.iter().map(|file| file.path().display().to_string()).collect::<Vec<_>>().join(" + ")
    }

    /// One line for a question that sums do not answer.
    pub fn refuse<T>(&self, question: &str) -> anyhow::Result<T> {
        anyhow::bail!(
            "{}: partial results are sums without executions, for `diff`, `merge` and `build --groups`: run `whyslow \
             {question}` on the databases",
            self.title()
        )
    }

    /// Write the file of their sums. Returns what is to be said, a line each.
    pub fn merge(&self, output: Output, ctx: &Ctx) -> anyhow::Result<Vec<String>> {
        let sums = PartialSums::of_files(&self.files, ctx)?;
        sums.save(output, ctx)?;
        Ok(repeated(&sums))
    }

    /// Write the tables of their sums below a folder.
    pub fn export(&self, folder: &Path, ctx: &Ctx) -> anyhow::Result<()> {
        #[cfg(feature = "parquet")]
        crate::saved::parquet::export_partials(&PartialSums::of_files(&self.files, ctx)?, folder, ctx)?;
        #[cfg(not(feature = "parquet"))]
        let _ = (folder, ctx);
        Ok(())
    }

    /// The comparison of the groups of a task, the first one where none is named. The model has the names and contexts
    /// alone.
    pub fn compared(
        &self,
        typed: Option<&str>,
        ctx: &Ctx,
    ) -> anyhow::Result<(Model, GroupTexts, PartialComparison, Vec<String>)> {
        let sums = PartialSums::of_files(&self.files, ctx)?;
        let tasks: Vec<String> = sums.tasks().map(str::to_owned).collect();
        let place = typed.map_or(Some(0), |typed| tasks.iter().position(|task| task == typed));
        let Some((place, (groups, tables))) = place.and_then(|place| Some((place, sums.task(place)?))) else {
            let hint = suggest(typed.unwrap_or(""), &tasks);
            return Err(UsageError(format!("--task {}: {}: {hint}", typed.unwrap_or(""), self.title())).into());
        };
        if groups.is_empty() {
            return self.without_groups(&sums, place, ctx);
        }
        let mut fleet = FleetSums::new(tables.contexts.len());
        sums.each_host(place, ctx, |host, totals| {
            fleet.put(host, totals);
            Ok::<(), SavedFileError>(())
        })?;
        let mut model = Model { names: tables.names.clone(), contexts: tables.contexts.clone(), ..Model::default() };
        (model.tasks, model.task) = (tasks.into(), place);
        let Some(compared) = fleet.compared(&model, &ctx.cancel) else {
            let GroupTexts { slow, fast } = groups;
            anyhow::bail!(
                "{}: a group is empty: no execution passes `{}`, or none `{}`; build with other filters",
                self.title(),
                slow.join(", "),
                fast.join(", ")
            );
        };
        let mut lines = repeated(&sums);
        if let (None, [_, others @ ..]) = (typed, &model.tasks[..])
            && !others.is_empty()
        {
            lines.push(format!(
                "the first of {} tasks; --task names another: `{}`",
                others.len() + 1,
                others.join("`, `")
            ));
        }
        Ok((model, groups.clone(), compared, lines))
    }

    /// An error that says the groups.
    fn without_groups<T>(&self, sums: &PartialSums<'_>, task: usize, ctx: &Ctx) -> anyhow::Result<T> {
        let Some([slow, fast]) = groups_by_length(&lengths(sums, task, ctx)?) else {
            anyhow::bail!(
                "{}: its executions are of one length: build with --slow and --fast to compare them",
                self.title()
            );
        };
        anyhow::bail!(
            "{}: lengths of executions alone: build the partial results of each host with `--groups` and the united \
             file, that is `--slow '{}' --fast '{}'`",
            self.title(),
            texts(&slow).join(", "),
            texts(&fast).join(", ")
        )
    }
}
