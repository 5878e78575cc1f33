//! What every run that changes something leaves behind: `.state/runs/<run>/run.json`, and the log
//! of each hook beside it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use vibe_core::PackageId;
use vibe_core::formats::decode::decode;
use vibe_core::hook::Phase;
use vibe_core::limits::{LOCK_BYTES, RUNS_KEPT};
use vibe_fs::{Durability, EntryKind, list_dir, read_if_exists, remove_tree, write_atomic};
use vibe_slot::Layout;

use crate::error::InstallError;
use crate::run_record::RunRecord;

/// The file name of a run's evidence.
const RUN_FILE: &str = "run.json";

/// The name of a run that started at `time` in the process `pid`. Names sort by time.
pub(crate) fn run_name(time: SystemTime, pid: u32) -> String {
    let stamp = humantime::format_rfc3339_millis(time).to_string();
    let digits: String = stamp
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    format!("{digits}-{pid}")
}

/// `time` in RFC 3339, UTC, to the millisecond.
pub(crate) fn time_text(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// `duration` in whole milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Where the evidence of `run` lies.
pub(crate) fn run_directory(layout: &Layout, run: &str) -> PathBuf {
    layout.runs().join(run)
}

/// Writes the evidence as it stands.
pub(crate) fn write_run(layout: &Layout, record: &RunRecord) -> Result<(), InstallError> {
    let directory = run_directory(layout, &record.run);
    vibe_fs::create_directory_all(&directory)?;
    let mut text =
        serde_json::to_string_pretty(record).expect("a record is plain data with string keys");
    text.push('\n');
    write_atomic(
        &directory.join(RUN_FILE),
        text.as_bytes(),
        &layout.staging(),
        Durability::Unsynced,
    )?;
    Ok(())
}

/// The names of the runs kept, the oldest first.
pub(crate) fn run_names(layout: &Layout) -> Result<Vec<String>, InstallError> {
    let entries = match list_dir(&layout.runs()) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| entry.stat.kind == EntryKind::Directory)
        .filter_map(|entry| entry.relative.into_os_string().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Reads the evidence of `run`; `None` where there is none that can be read.
pub(crate) fn read_run(layout: &Layout, run: &str) -> Result<Option<RunRecord>, InstallError> {
    let is_name = !run.is_empty() && run.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name {
        return Ok(None);
    }
    let path = run_directory(layout, run).join(RUN_FILE);
    let bytes = read_if_exists(&path, LOCK_BYTES)
        .map_err(|source| InstallError::ReadEvidence { source })?;
    Ok(bytes
        .and_then(|bytes| decode(&bytes).ok())
        .and_then(|text| serde_json::from_str(&text).ok()))
}

/// Removes the oldest runs beyond [`RUNS_KEPT`]. The run `current` stays, whatever the clock said
/// when it began, and so does the last log of each hook in `owed`: it says why the hook is still
/// due. What cannot be removed stays for the next time.
pub(crate) fn prune_runs(
    layout: &Layout,
    current: &str,
    owed: BTreeSet<(PackageId, Phase)>,
) -> Result<(), InstallError> {
    let names = run_names(layout)?;
    let excess = names.len().saturating_sub(RUNS_KEPT);
    if excess == 0 {
        return Ok(());
    }
    let mut kept = last_logs(layout, &names, owed)?;
    kept.insert(current.to_owned());
    let oldest = names.iter().filter(|name| !kept.contains(*name));
    for name in oldest.take(excess) {
        if let Err(error) = remove_tree(&run_directory(layout, name)) {
            tracing::warn!("{error}");
        }
    }
    Ok(())
}

/// The runs that have the last log of a hook in `owed`; `names` are all runs, the oldest first.
fn last_logs(
    layout: &Layout,
    names: &[String],
    mut owed: BTreeSet<(PackageId, Phase)>,
) -> Result<BTreeSet<String>, InstallError> {
    let mut found = BTreeSet::new();
    for name in names.iter().rev() {
        if owed.is_empty() {
            break;
        }
        let run = read_run(layout, name)?;
        let logged = run.iter().flat_map(|run| &run.hooks);
        for hook in logged.filter(|hook| hook.log.is_some()) {
            if owed.remove(&(hook.package.clone(), hook.phase)) {
                found.insert(name.clone());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_names_sort_by_time() {
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        assert_eq!(run_name(at(1_500), 7), "19700101T000001500Z-7");
        assert!(run_name(at(9), 99) < run_name(at(10), 1));
    }
}
