//! `vibedeps/.state/slots.toml`: what this machine knows of its slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::digest::Sha256Digest;
use crate::formats::clone_state::{CloneTable, clone_state, push_clone};
use crate::formats::diagnostic::Diagnostic;
use crate::formats::hook_state::{RunningTable, push_phases, push_running, running_hook};
use crate::formats::typed::{self, FileTable};
use crate::hook::{HookReason, Phase, PhaseState};
use crate::identifier::SlotName;
use crate::relative_path::RelPath;
use crate::tree::{TreeId, TreeRow};

pub use crate::formats::clone_state::{CloneState, CloneStatus};
pub use crate::formats::hook_state::{RunningHook, RunningProcess};

/// The schema number written.
pub const STATE_SCHEMA: u64 = 1;

/// All rows, by slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineState {
    /// The slots that have state.
    pub slots: BTreeMap<SlotName, SlotState>,
    /// The in-place slots.
    pub clones: BTreeMap<SlotName, CloneState>,
}

/// One slot's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotState {
    /// The tree that is placed, or being placed.
    pub tree: TreeId,
    /// The declared phases and where they stand.
    pub phases: BTreeMap<Phase, PhaseState>,
    /// Why the owed phases are owed.
    pub reason: HookReason,
    /// The version that was installed before, if another was.
    pub previous_version: Option<String>,
    /// What this package's own hooks made of its payload.
    pub after: BTreeMap<RelPath, AfterFile>,
    /// The topmost paths that appeared during its hooks.
    pub made: BTreeMap<RelPath, MadePath>,
    /// Content that a refresh under way may leave: ours though no record names it. Sorted by path,
    /// each once.
    pub adding: Vec<TreeRow>,
    /// The way its files were really placed.
    pub link_mode: LinkMode,
    /// The boot under which it was placed, if the system tells.
    pub boot: Option<String>,
    /// An install hook that was started and not seen to end.
    pub running: Option<RunningHook>,
}

/// A payload file as the package's own hooks left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFile {
    /// With these bytes and exec bit.
    File {
        /// Its content.
        digest: Sha256Digest,
        /// Its exec bit.
        exec: bool,
    },
    /// Deleted.
    Deleted,
}

/// A path that appeared during a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadePath {
    /// What it is.
    pub kind: MadeKind,
    /// A digest of what it is and of the listing under it.
    pub listing: Sha256Digest,
}

/// What a made path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MadeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// The way files were placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkMode {
    /// Copied.
    #[default]
    Copy,
    /// Sharing blocks until written.
    Reflink,
    /// Sharing the inode.
    Hardlink,
}

/// Why a text is no machine state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It breaks a rule.
    #[error("the machine state is malformed")]
    Malformed(#[from] Diagnostic),
    /// Its schema is newer than [`STATE_SCHEMA`]; nothing else of it was looked at.
    #[error("the machine state was made by a newer vibe: it has schema {found}")]
    Newer {
        /// Its schema.
        found: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    #[serde(default)]
    slot: Vec<SlotTable>,
    #[serde(default)]
    clone: Vec<CloneTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SlotTable {
    slot: Spanned<SlotName>,
    tree: TreeId,
    reason: HookReason,
    previous_version: Option<String>,
    #[serde(default)]
    link_mode: LinkMode,
    boot: Option<String>,
    #[serde(default)]
    phases: BTreeMap<Phase, PhaseState>,
    running: Option<RunningTable>,
    #[serde(default)]
    after: Vec<AfterTable>,
    #[serde(default)]
    made: Vec<MadeTable>,
    #[serde(default)]
    adding: Vec<FileTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AfterTable {
    path: Spanned<RelPath>,
    sha256: Option<Sha256Digest>,
    #[serde(default, deserialize_with = "typed::only_true")]
    exec: bool,
    #[serde(default, deserialize_with = "typed::only_true")]
    deleted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MadeTable {
    path: Spanned<RelPath>,
    kind: MadeKind,
    listing: Sha256Digest,
}

impl LinkMode {
    /// The word used in messages and state.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkMode::Copy => "copy",
            LinkMode::Reflink => "reflink",
            LinkMode::Hardlink => "hardlink",
        }
    }
}

impl SlotState {
    /// Whether the row tells nothing but of which tree the slot is and how its files are placed.
    pub fn is_plain(&self) -> bool {
        self.phases.is_empty()
            && self.after.is_empty()
            && self.made.is_empty()
            && self.adding.is_empty()
            && self.running.is_none()
    }

    /// Whether the row tells anything: a slot whose files are plain copies needs none for that.
    pub fn is_needed(&self) -> bool {
        !self.is_plain() || self.link_mode != LinkMode::Copy
    }
}

impl MadeKind {
    /// The word used in messages and state.
    pub fn as_str(self) -> &'static str {
        match self {
            MadeKind::File => "file",
            MadeKind::Directory => "directory",
            MadeKind::Symlink => "symlink",
            MadeKind::Other => "other",
        }
    }
}

impl MachineState {
    /// The declared phases of `slot` and where they stand, if it has a row of either kind.
    pub fn phases(&self, slot: &SlotName) -> Option<&BTreeMap<Phase, PhaseState>> {
        match slot.version() {
            Some(_) => self.slots.get(slot).map(|row| &row.phases),
            None => self.clones.get(slot).map(|row| &row.phases),
        }
    }

    /// Reads the text of a `slots.toml`.
    ///
    /// # Errors
    /// A newer schema than [`STATE_SCHEMA`], or the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, StateError> {
        let (found, table) = typed::document(text, "schema")?;
        if found > STATE_SCHEMA {
            return Err(StateError::Newer { found });
        }
        if found < STATE_SCHEMA {
            let message = format!("there is no machine state of schema {found}");
            return Err(Diagnostic::new(message).into());
        }
        let table: StateTable = typed::read(text, table)?;
        typed::check_sorted(text, table.slot.iter().map(|slot| &slot.slot))?;
        let slots: Result<_, Diagnostic> = table
            .slot
            .into_iter()
            .map(|slot| slot_state(text, slot))
            .collect();
        typed::check_sorted(text, table.clone.iter().map(|clone| &clone.clone))?;
        let clones: Result<_, Diagnostic> = table
            .clone
            .into_iter()
            .map(|clone| clone_state(text, clone))
            .collect();
        Ok(Self {
            slots: slots?,
            clones: clones?,
        })
    }

    /// The text of the state, the same bytes for equal states.
    pub fn render(&self) -> String {
        let mut out = String::new();
        typed::push_bare(&mut out, "schema", STATE_SCHEMA);
        // By the directory, as a reader sees it; slots themselves order by id.
        let mut slots: Vec<(String, &SlotState)> = self
            .slots
            .iter()
            .map(|(slot, state)| (slot.directory(), state))
            .collect();
        slots.sort_by(|one, other| one.0.cmp(&other.0));
        for (directory, state) in slots {
            push_slot(&mut out, &directory, state);
        }
        let mut clones: Vec<(String, &CloneState)> = self
            .clones
            .iter()
            .map(|(slot, state)| (slot.directory(), state))
            .collect();
        clones.sort_by(|one, other| one.0.cmp(&other.0));
        for (directory, state) in clones {
            push_clone(&mut out, &directory, state);
        }
        out
    }
}

fn slot_state(text: &str, table: SlotTable) -> Result<(SlotName, SlotState), Diagnostic> {
    if table.slot.get_ref().version().is_none() {
        let message = "the slot of a copy or of links needs a version";
        return Err(typed::at(text, &table.slot, message));
    }
    typed::check_sorted(text, table.after.iter().map(|after| &after.path))?;
    typed::check_sorted(text, table.made.iter().map(|made| &made.path))?;
    let after: Result<_, Diagnostic> = table
        .after
        .into_iter()
        .map(|after| after_file(text, after))
        .collect();
    let made = |made: MadeTable| {
        let MadeTable {
            path,
            kind,
            listing,
        } = made;
        (path.into_inner(), MadePath { kind, listing })
    };
    let state = SlotState {
        tree: table.tree,
        phases: table.phases,
        reason: table.reason,
        previous_version: table.previous_version,
        after: after?,
        made: table.made.into_iter().map(made).collect(),
        adding: typed::file_rows(text, &table.adding)?,
        link_mode: table.link_mode,
        boot: table.boot,
        running: table
            .running
            .map(|running| running_hook(text, running))
            .transpose()?,
    };
    Ok((table.slot.into_inner(), state))
}

fn after_file(text: &str, table: AfterTable) -> Result<(RelPath, AfterFile), Diagnostic> {
    typed::check_payload(text, &table.path)?;
    let file = match (table.sha256, table.exec, table.deleted) {
        (Some(digest), exec, false) => AfterFile::File { digest, exec },
        (None, false, true) => AfterFile::Deleted,
        _ => {
            let message = "a row of `after` has either `sha256` or `deleted`";
            return Err(typed::at(text, &table.path, message));
        }
    };
    Ok((table.path.into_inner(), file))
}

fn push_slot(out: &mut String, directory: &str, state: &SlotState) {
    typed::push_header(out, "[[slot]]");
    typed::push_text(out, "slot", directory);
    typed::push_text(out, "tree", state.tree);
    typed::push_text(out, "reason", state.reason.as_str());
    if let Some(version) = &state.previous_version {
        typed::push_text(out, "previous-version", version);
    }
    if state.link_mode != LinkMode::default() {
        typed::push_text(out, "link-mode", state.link_mode.as_str());
    }
    if let Some(boot) = &state.boot {
        typed::push_text(out, "boot", boot);
    }
    push_phases(out, "[slot.phases]", &state.phases);
    if let Some(running) = &state.running {
        push_running(out, "[slot.running]", running);
    }
    for (path, after) in &state.after {
        push_after(out, path, after);
    }
    for (path, made) in &state.made {
        typed::push_header(out, "[[slot.made]]");
        typed::push_text(out, "path", path);
        typed::push_text(out, "kind", made.kind.as_str());
        typed::push_text(out, "listing", made.listing);
    }
    let mut adding: Vec<&TreeRow> = state.adding.iter().collect();
    adding.sort_by_key(|row| &row.path);
    for row in adding {
        typed::push_file(out, "[[slot.adding]]", row);
    }
}

fn push_after(out: &mut String, path: &RelPath, after: &AfterFile) {
    match *after {
        AfterFile::File { digest, exec } => {
            let path = path.clone();
            typed::push_file(out, "[[slot.after]]", &TreeRow { path, digest, exec });
        }
        AfterFile::Deleted => {
            typed::push_header(out, "[[slot.after]]");
            typed::push_text(out, "path", path);
            typed::push_bare(out, "deleted", true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::typed::testing;
    use crate::identifier::PackageId;
    use crate::version::Version;
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn slot(id: &str) -> SlotName {
        let id: PackageId = id.parse().unwrap();
        SlotName::new(&id, &Version::new(1, 0, 0))
    }

    fn plain_state() -> SlotState {
        SlotState {
            tree: crate::tree::Tree::default().id(),
            phases: BTreeMap::new(),
            reason: HookReason::Install,
            previous_version: None,
            after: BTreeMap::new(),
            made: BTreeMap::new(),
            adding: Vec::new(),
            link_mode: LinkMode::Copy,
            boot: None,
            running: None,
        }
    }

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    fn full_state() -> SlotState {
        let digest = Sha256Digest::of(b"");
        SlotState {
            phases: [
                (Phase::PreInstall, PhaseState::Done),
                (Phase::PostInstall, PhaseState::Owed),
            ]
            .into(),
            reason: HookReason::Update,
            previous_version: Some("0.9.0".into()),
            after: [
                (path("a"), AfterFile::Deleted),
                (path("b"), AfterFile::File { digest, exec: true }),
                (
                    path("c"),
                    AfterFile::File {
                        digest,
                        exec: false,
                    },
                ),
            ]
            .into(),
            made: [(
                path("d"),
                MadePath {
                    kind: MadeKind::Symlink,
                    listing: digest,
                },
            )]
            .into(),
            adding: vec![TreeRow {
                path: path("e"),
                digest,
                exec: true,
            }],
            link_mode: LinkMode::Reflink,
            boot: Some("x\"y".into()),
            running: Some(RunningHook {
                phase: Phase::PostInstall,
                process: Some(RunningProcess {
                    pid: 7,
                    start_time: Some(u64::MAX),
                }),
            }),
            ..plain_state()
        }
    }

    fn documented_text() -> String {
        let digest = Sha256Digest::of(b"");
        let tree = plain_state().tree;
        format!(
            r#"schema = 1

[[slot]]
slot = "a.b/1.0.0"
tree = "{tree}"
reason = "update"
previous-version = "0.9.0"
link-mode = "reflink"
boot = "x\"y"

[slot.phases]
pre-install = "done"
post-install = "owed"

[slot.running]
phase = "post-install"
pid = 7
start-time = 18446744073709551615

[[slot.after]]
path = "a"
deleted = true

[[slot.after]]
path = "b"
sha256 = "{digest}"
exec = true

[[slot.after]]
path = "c"
sha256 = "{digest}"

[[slot.made]]
path = "d"
kind = "symlink"
listing = "{digest}"

[[slot.adding]]
path = "e"
sha256 = "{digest}"
exec = true

[[slot]]
slot = "a.z.b/1.0.0"
tree = "{tree}"
reason = "install"
"#
        )
    }

    #[test]
    fn a_state_has_the_documented_bytes() {
        let slots = [(slot("a.z/b"), plain_state()), (slot("a/b"), full_state())];
        let state = MachineState {
            slots: slots.into(),
            ..MachineState::default()
        };
        assert_eq!(state.render(), documented_text());
        assert_eq!(MachineState::parse(&documented_text()), Ok(state));
        assert_eq!(MachineState::default().render(), "schema = 1\n");
    }

    /// `rows` as the rest of a slot's table, and what is wrong at which line of them.
    fn check_refused_at(rows: &str, message: &str, line: usize) {
        let tree = plain_state().tree;
        let head = format!(
            "schema = 1\n[[slot]]\nslot = \"a.b/1.0.0\"\ntree = \"{tree}\"\nreason = \"install\"\n"
        );
        let digest = format!("'{}'", Sha256Digest::of(b""));
        let text = format!("{head}{}", rows.replace("DIGEST", &digest));
        let error = MachineState::parse(&text).unwrap_err();
        let StateError::Malformed(found) = error else {
            panic!("{rows}: {error}");
        };
        assert!(found.message.contains(message), "{rows}: {found}");
        let found_line = found.position.map(|position| position.line);
        assert_eq!(found_line, Some(line + 5), "{rows}: {found}");
    }

    /// The same for rows whose last line is wrong.
    fn check_refused(rows: &str, message: &str) {
        check_refused_at(rows, message, rows.lines().count());
    }

    #[test]
    fn a_state_that_breaks_a_rule_is_refused() {
        let check = check_refused;
        check("colour = 1", "unknown key `colour`");
        check("link-mode = 'move'", "`move`");
        check("phases = { mid-install = 'owed' }", "`mid-install`");
        check("phases = { pre-install = 'late' }", "`late`");
        check("running = { pid = 7 }", "no `phase`");
        let hook = |rest: &str| format!("running = {{ phase = 'pre-install', {rest} }}");
        check(&hook("start-time = 7"), "needs a `pid`");
        check(&hook("pid = -1"), "-1");
        check(&hook("session = 1"), "unknown key `session`");
    }

    #[test]
    fn what_a_hook_left_is_said_in_one_way() {
        let check = |rest: &str, message| {
            check_refused(&format!("after = [{{ path = 'a'{rest} }}]"), message);
        };
        check("", "either `sha256` or `deleted`");
        check(", exec = true", "either `sha256`");
        check(", exec = true, deleted = true", "either `sha256`");
        check(", sha256 = DIGEST, deleted = true", "either `sha256`");
        check(", sha256 = DIGEST, exec = false", "only `true`");
        check(", deleted = false", "only `true`");
        check(", deleted = true, x = 1", "unknown key `x`");
    }

    #[test]
    fn rows_of_a_slot_are_sorted_payload_paths() {
        for (key, rest) in [
            ("after", "deleted = true"),
            ("made", "kind = 'file', listing = DIGEST"),
            ("adding", "sha256 = DIGEST"),
        ] {
            let rows = |one: &str, other: &str| {
                format!("{key} = [{{ path = '{one}', {rest} }},\n{{ path = '{other}', {rest} }}]")
            };
            check_refused(&rows("b", "a"), "`a` is out of order");
            check_refused(&rows("a", "a"), "`a` is there twice");
            check_refused(&rows("a", "../b"), "`..`");
            if key != "made" {
                check_refused(&rows(".a", ".vibe-slot.toml"), "a name of vibe itself");
            }
        }
        check_refused(
            "made = [{ path = 'a', kind = 'pipe', listing = DIGEST }]",
            "`pipe`",
        );
        check_refused("made = [{ path = 'a', kind = 'file' }]", "no `listing`");
        let unknown = "made = [{ path = 'a', kind = 'file', listing = DIGEST, x = 1 }]";
        check_refused(unknown, "unknown key `x`");
    }

    #[test]
    fn slots_are_whole_and_sorted_by_their_directory() {
        let tree = plain_state().tree;
        check_refused("[[slot]]\nslot = 'a/1.0.0'", "`a/1.0.0`");
        check_refused_at("[[slot]]\nslot = 'a.c/1.0.0'", "no `tree`", 1);
        let whole = |name| format!("[[slot]]\nslot = '{name}'\nreason = 'retry'\ntree = '{tree}'");
        check_refused_at(&whole("a.a/1.0.0"), "`a.a/1.0.0` is out of order", 2);
        check_refused_at(&whole("a.b/1.0.0"), "`a.b/1.0.0` is there twice", 2);
    }

    #[test]
    fn a_state_of_another_schema_is_named_whatever_its_shape() {
        let parse = MachineState::parse;
        assert_eq!(
            parse("schema = 2\nslot = 1\n"),
            Err(StateError::Newer { found: 2 })
        );
        for text in ["", "schema = 0", "schema = 1\nx = 1", "schema ="] {
            assert!(
                matches!(parse(text), Err(StateError::Malformed(_))),
                "{text}"
            );
        }
        assert_eq!(parse("schema = 1"), Ok(MachineState::default()));
    }

    #[test]
    fn words_read_back() {
        for mode in [LinkMode::Copy, LinkMode::Reflink, LinkMode::Hardlink] {
            let word = format!("\"{}\"", mode.as_str());
            assert_eq!(serde_json::to_string(&mode).unwrap(), word);
        }
        for kind in [
            MadeKind::File,
            MadeKind::Directory,
            MadeKind::Symlink,
            MadeKind::Other,
        ] {
            let word = format!("\"{}\"", kind.as_str());
            assert_eq!(serde_json::to_string(&kind).unwrap(), word);
        }
    }

    fn any_after() -> impl Strategy<Value = AfterFile> {
        prop_oneof![
            (testing::any_digest(), any::<bool>())
                .prop_map(|(digest, exec)| AfterFile::File { digest, exec }),
            Just(AfterFile::Deleted),
        ]
    }

    fn any_made() -> impl Strategy<Value = MadePath> {
        let kinds = [
            MadeKind::File,
            MadeKind::Directory,
            MadeKind::Symlink,
            MadeKind::Other,
        ];
        (select(kinds.to_vec()), testing::any_digest())
            .prop_map(|(kind, listing)| MadePath { kind, listing })
    }

    fn any_running() -> impl Strategy<Value = RunningHook> {
        let process = (any::<u32>(), option::of(any::<u64>()))
            .prop_map(|(pid, start_time)| RunningProcess { pid, start_time });
        (select(Phase::ALL.to_vec()), option::of(process))
            .prop_map(|(phase, process)| RunningHook { phase, process })
    }

    fn any_state() -> impl Strategy<Value = SlotState> {
        let phase_states = [
            PhaseState::Owed,
            PhaseState::Skipped,
            PhaseState::Declined,
            PhaseState::Done,
        ];
        let reasons = [
            HookReason::Install,
            HookReason::Update,
            HookReason::Repair,
            HookReason::Retry,
            HookReason::Manual,
        ];
        let link_modes = [LinkMode::Copy, LinkMode::Reflink, LinkMode::Hardlink];
        let words = (
            testing::any_digest(),
            select(reasons.to_vec()),
            option::of("\\PC{0,6}"),
            select(link_modes.to_vec()),
            option::of("[\\PC\r\n]{0,6}"),
        );
        let rows = (
            btree_map(testing::any_path(), any_after(), 0..3),
            btree_map(testing::any_path(), any_made(), 0..3),
            vec(testing::any_row(), 0..3),
        );
        let phases = btree_map(
            select(Phase::ALL.to_vec()),
            select(phase_states.to_vec()),
            0..3,
        );
        (words, rows, phases, option::of(any_running())).prop_map(
            |((tree, reason, previous_version, link_mode, boot), rows, phases, running)| {
                let (after, made, mut adding) = rows;
                adding.sort_by(|one: &TreeRow, other| one.path.cmp(&other.path));
                adding.dedup_by(|one, other| one.path == other.path);
                SlotState {
                    tree: format!("tree1:{tree}").parse().unwrap(),
                    phases,
                    reason,
                    previous_version,
                    after,
                    made,
                    adding,
                    link_mode,
                    boot,
                    running,
                }
            },
        )
    }

    fn any_machine() -> impl Strategy<Value = MachineState> {
        let name = (testing::any_id(), testing::any_version())
            .prop_map(|(id, version)| SlotName::new(&id, &version));
        btree_map(name, any_state(), 0..4).prop_map(|slots| MachineState {
            slots,
            ..MachineState::default()
        })
    }

    proptest! {
        #[test]
        fn a_state_reads_back_as_it_was_written(state in any_machine()) {
            let text = state.render();
            let read = MachineState::parse(&text).unwrap();
            prop_assert_eq!(read.render(), text.as_str());
            prop_assert_eq!(&read, &state);
            let mut reversed = state;
            reversed.slots.values_mut().for_each(|slot| slot.adding.reverse());
            prop_assert_eq!(reversed.render(), text);
        }

        #[test]
        fn a_changed_state_is_refused_or_reads_back(
            state in any_machine(),
            from in any::<proptest::sample::Index>(),
            length in 0..9_usize,
            replacement in "[\\PC\n]{0,3}",
        ) {
            let text = testing::mutate(&state.render(), from, length, &replacement);
            if let Ok(read) = MachineState::parse(&text) {
                prop_assert_eq!(MachineState::parse(&read.render()).unwrap(), read);
            }
        }
    }
}
