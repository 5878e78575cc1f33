//! One store, several processes: what threads cannot show. Each helper is this test binary again,
//! told by one line of its input what to do.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests start processes, and fail by panicking"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use vibe_core::{Cancellation, RelPath, TreeId};
use vibe_store::{GcPolicy, StagedTree, Store};

const FILES: usize = 40;
const FILE_BYTES: usize = 20_000;

fn path(index: usize) -> RelPath {
    RelPath::new(&format!("d{}/file-{index}", index % 7)).unwrap()
}

fn content(index: usize) -> Vec<u8> {
    vec![b'a' + u8::try_from(index % 26).unwrap(); FILE_BYTES + index]
}

fn add_all(staged: &StagedTree) -> Result<(), vibe_store::StoreError> {
    for index in 0..FILES {
        let exec = index % 2 == 1;
        staged.add(&path(index), &mut content(index).as_slice(), exec, 1 << 20)?;
    }
    Ok(())
}

/// Whether every file of the package is in the store, whole.
fn assert_whole(store: &Store, tree: TreeId) {
    let stored = store.get(tree).unwrap().unwrap();
    assert_eq!(stored.files().count(), FILES);
    for index in 0..FILES {
        let place = stored.proved(&path(index)).unwrap();
        assert!(fs::read(place).unwrap() == content(index), "file {index}");
    }
    let verified = store.verify(&Cancellation::new()).unwrap();
    assert_eq!((verified.damaged, verified.cancelled), (Vec::new(), false));
}

fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

/// What a helper does with the store `root`.
fn act(role: &str, root: &Path) {
    let store = Store::new(root.to_path_buf());
    match role {
        "put" => {
            let staged = store.stage().unwrap();
            add_all(&staged).unwrap();
            let stored = staged.finish().unwrap();
            assert_whole(&store, stored.id());
        }
        "put under a umask" => {
            use rustix::fs::Mode;
            rustix::process::umask(Mode::from_raw_mode(0o077));
            let staged = store.stage().unwrap();
            add_all(&staged).unwrap();
            staged.finish().unwrap();
        }
        "use and put until told" => {
            let usage = store.use_shared().unwrap();
            let staged = store.stage().unwrap();
            add_all(&staged).unwrap();
            std::io::stdout().write_all(b"\nready\n").unwrap();
            wait_for_line();
            let stored = staged.finish().unwrap();
            assert_whole(&store, stored.id());
            drop(usage);
        }
        "fill up" => {
            let staged = store.stage().unwrap();
            let error = add_all(&staged).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("could not write"), "{text}");
            assert!(text.contains("tree/files/d0/file-0"), "{text}");
            drop(staged);
            assert_eq!(names(&root.join("v1/staging")), [""; 0]);
            assert!(!root.join("v1/trees").exists());
        }
        other => panic!("{other}?"),
    }
}

fn wait_for_line() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
#[ignore = "the other tests start it"]
fn helper() {
    let line = wait_for_line();
    let (role, root) = line.split_once(':').unwrap();
    act(role, Path::new(root));
}

fn command() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--ignored", "--exact", "helper", "--nocapture"];
    std::iter::once(program.to_str().unwrap())
        .chain(arguments)
        .map(str::to_owned)
        .collect()
}

fn start(command: &[String], role: &str, root: &Path) -> Child {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = format!("{role}:{}\n", root.display());
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    child
}

fn assert_succeeds(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// Reads the output of `child` up to the line by which it says that it waits.
fn wait_until_ready(child: &mut Child) {
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    let ready = output.lines().any(|line| line.unwrap() == "ready");
    assert!(ready, "it ended before it was ready");
}

#[test]
fn eight_processes_on_a_cold_store_all_succeed_and_every_file_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let children: Vec<Child> = (0..8).map(|_| start(&command(), "put", &root)).collect();
    children.into_iter().for_each(assert_succeeds);
    let store = Store::new(root.clone());
    let entries = store.entries().unwrap();
    assert_eq!(entries.len(), 1);
    assert_whole(&store, entries[0].tree);
    assert_eq!(names(&root.join("v1/staging")), [""; 0]);
}

#[test]
fn a_killed_process_leaves_only_staging_which_the_next_one_removes() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let staging = root.join("v1/staging");
    let mut child = start(&command(), "use and put until told", &root);
    wait_until_ready(&mut child);
    let store = Store::new(root.clone());
    let before = store
        .gc(
            GcPolicy {
                unused_for: std::time::Duration::ZERO,
            },
            &Cancellation::new(),
        )
        .unwrap();
    assert!(before.in_use);
    assert_eq!((before.staging, names(&staging).len()), (0, 1));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(&staging).len(), 1);
    assert_eq!(store.entries().unwrap(), []);
    let staged = store.stage().unwrap();
    assert_eq!(names(&staging).len(), 1, "ours alone");
    add_all(&staged).unwrap();
    let stored = staged.finish().unwrap();
    assert_whole(&store, stored.id());
    assert_eq!(names(&staging), [""; 0]);
}

#[test]
fn a_process_that_uses_the_store_finishes_beside_garbage_collection() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let policy = GcPolicy {
        unused_for: std::time::Duration::ZERO,
    };
    let mut child = start(&command(), "use and put until told", &root);
    wait_until_ready(&mut child);
    let store = Store::new(root.clone());
    for _ in 0..20 {
        assert!(store.gc(policy, &Cancellation::new()).unwrap().in_use);
    }
    child.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    assert_succeeds(child);
    let outcome = store.gc(policy, &Cancellation::new()).unwrap();
    assert_eq!((outcome.removed.len(), outcome.in_use), (1, false));
}

#[test]
fn the_umask_of_who_stores_a_tree_decides_nothing_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    assert_succeeds(start(&command(), "put under a umask", &root));
    let store = Store::new(root);
    let tree = store.entries().unwrap()[0].tree;
    let stored = store.get(tree).unwrap().unwrap();
    for file in stored.files() {
        let place = stored.proved(&file.row.path).unwrap();
        let mode = place.symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode, if file.row.exec { 0o555 } else { 0o444 });
    }
}

#[test]
fn a_file_that_does_not_fit_is_named_and_nothing_is_published() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    // A limit of a few blocks of 512 or 1,024 bytes, whose signal is ignored, so that writing fails.
    let mut limited: Vec<String> = ["sh", "-c", r#"trap "" XFSZ; ulimit -f 8; exec "$@""#, "sh"]
        .map(str::to_owned)
        .to_vec();
    limited.extend(command());
    assert_succeeds(start(&limited, "fill up", &root));
    assert_succeeds(start(&command(), "put", &root));
}
