//! What is done in one conversation with a server: list its references, or fetch objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::progress::Discard;
use gix::protocol::fetch::Tags;
use gix::protocol::handshake::Ref;
use gix::protocol::ls_refs::RefPrefixes;
use gix::refs::transaction::PreviousValue;
use gix::remote::Direction;
use gix::remote::fetch::refmap::Source;
use gix_transport::Service;
use vibe_fs::FileLock;

use crate::connect::{Destination, Link};
use crate::error::{Cause, GitError};
use crate::object::CommitId;
use crate::refs::Refs;

/// Bytes that one fetch may bring: twice the largest package, for its history.
const PACK_BYTES: u64 = 20 << 30;
/// How we introduce ourselves.
const AGENT: &str = concat!("git/vibe-", env!("CARGO_PKG_VERSION"));
/// Settings of our own cache repositories.
const SETTINGS: [&str; 2] = ["core.useReplaceRefs=false", "core.logAllRefUpdates=false"];

/// A reference of the server, or an id that was asked for by itself, and the object that it leads
/// to, tags followed.
pub(crate) type Found = (BString, gix::ObjectId);

/// Lists the tags and branches of a server.
pub(crate) fn list(destination: &Destination) -> Result<Refs, GitError> {
    let mut link = destination.connect()?;
    let listed = list_through(&mut link);
    let refs = listed.map_err(|error| destination.explain(link.child.as_ref(), &error))?;
    Ok(named(&refs))
}

fn list_through(link: &mut Link) -> Result<Vec<Ref>, gix::Error> {
    let transport = &mut link.transport;
    let handshake = gix::protocol::handshake(
        &mut *transport,
        Service::UploadPack,
        |_| Ok(None),
        Vec::new(),
        &mut Discard,
    )?;
    if let Some(refs) = handshake.refs {
        return Ok(refs);
    }
    let mut prefixes = RefPrefixes::new();
    prefixes.extend(["HEAD", "refs/heads/", "refs/tags/"].map(BString::from));
    let agent = ("agent", Some(AGENT.to_owned()));
    let command = gix::protocol::LsRefsCommand::new(Some(prefixes), &handshake.capabilities, agent);
    let refs = command.invoke_blocking(&mut *transport, &mut Discard, false)?;
    // That we say goodbye is a courtesy: the list is here.
    let _ = gix::protocol::indicate_end_of_interaction(&mut *transport, false);
    Ok(refs)
}

fn named(refs: &[Ref]) -> Refs {
    let mut named = Refs::default();
    let mut head_target = None;
    for reference in refs {
        let Some((name, object)) = peeled(reference) else {
            continue;
        };
        let Ok(name) = name.to_str() else { continue };
        let commit = CommitId(object);
        if name == "HEAD" {
            named.head = Some(commit);
            if let Ref::Symbolic { target, .. } = reference {
                head_target = target.to_str().ok().map(str::to_owned);
            }
        } else if let Some(tag) = name.strip_prefix("refs/tags/") {
            named.tags.insert(tag.to_owned(), commit);
        } else if let Some(branch) = name.strip_prefix("refs/heads/") {
            named.branches.insert(branch.to_owned(), commit);
        }
    }
    named.default_branch = head_target
        .and_then(|target| target.strip_prefix("refs/heads/").map(str::to_owned))
        .filter(|branch| named.branches.contains_key(branch));
    named
}

/// A cache repository that is written by one transfer at a time.
#[derive(Clone)]
pub(crate) struct Cache {
    pub(crate) path: PathBuf,
    /// Held until the last thread that may write is done. `None` where there are no locks.
    pub(crate) lock: Option<Arc<FileLock>>,
}

impl Cache {
    /// Fetches what `names` name (references or full ids), history included.
    ///
    /// # Errors
    /// That of the conversation; [`GitError::DamagedCache`] if the repository cannot be opened.
    pub(crate) fn fetch(
        &self,
        destination: &Destination,
        names: &[String],
    ) -> Result<Vec<Found>, GitError> {
        let damaged = |error: gix::Error| self.damaged(destination, &error);
        let handle = open_ours(&self.path).map_err(damaged)?;
        let remote = handle
            .remote_at_without_url_rewrite(destination.url.as_str())
            .and_then(|remote| {
                let remote = remote.with_fetch_tags(Tags::None);
                remote.with_refspecs(names.iter().map(String::as_str), Direction::Fetch)
            })
            .map_err(damaged)?;
        let link = destination.connect()?;
        let child = link.child;
        let explain = |error: gix::Error| destination.explain(child.as_ref(), &error);
        let connection = remote.to_connection_with_transport(link.transport);
        let prepared = connection
            .with_credentials(|_| Ok(None))
            .prepare_fetch(Discard, gix::remote::ref_map::Options::default())
            .map_err(explain)?;
        let mappings = &prepared.ref_map().mappings;
        let found: Vec<Found> = mappings.iter().filter_map(|m| found(&m.remote)).collect();
        if !found.is_empty() {
            destination.watch.expect_bytes(PACK_BYTES);
            let stopped = destination.watch.stopped();
            prepared.receive(Discard, stopped).map_err(explain)?;
        }
        Ok(found)
    }

    /// Keeps `commit` in the cache, also under each of `names`.
    ///
    /// # Errors
    /// [`GitError::DamagedCache`].
    pub(crate) fn keep(
        &self,
        destination: &Destination,
        commit: &CommitId,
        names: &[String],
    ) -> Result<(), GitError> {
        let damaged = |error: gix::Error| self.damaged(destination, &error);
        let handle = open_ours(&self.path).map_err(damaged)?;
        let own = format!("{KEPT}{commit}");
        for name in names.iter().chain([&own]) {
            let name: &BStr = name.as_str().into();
            handle
                .reference(name, commit.0, PreviousValue::Any, "")
                .map_err(damaged)?;
        }
        Ok(())
    }

    /// What is kept under `name`.
    pub(crate) fn kept(&self, name: &str) -> Option<CommitId> {
        let handle = open_ours(&self.path).ok()?;
        let reference = handle.try_find_reference(name).ok()??;
        reference.try_id().map(|id| CommitId(id.detach()))
    }

    fn damaged(&self, destination: &Destination, error: &gix::Error) -> GitError {
        let path = self.path.as_os_str().as_encoded_bytes();
        GitError::DamagedCache {
            repository: destination.url.to_string(),
            path: vibe_core::text::escape_bytes(path),
            source: Cause::of(error),
        }
    }
}

/// What begins the references of a cache. All are in one directory, so that no name is in the way
/// of another.
pub(crate) const KEPT: &str = "refs/vibe/";

fn found(source: &Source) -> Option<Found> {
    match source {
        Source::ObjectId(id) => Some((BString::default(), *id)),
        Source::Ref(reference) => peeled(reference).map(|(name, object)| (name.to_owned(), object)),
    }
}

/// The name of a reference and the object that it leads to, tags followed; `None` for one that
/// leads to nothing yet.
fn peeled(reference: &Ref) -> Option<(&BStr, gix::ObjectId)> {
    let (name, target, peeled) = reference.unpack();
    Some((name, peeled.or(target)?.to_owned()))
}

fn open_ours(path: &Path) -> Result<gix::Repository, gix::Error> {
    let options = gix::open::Options::isolated()
        .with(gix::sec::Trust::Full)
        .open_path_as_is(true)
        .config_overrides(SETTINGS);
    options.open(path).map(|shared| shared.to_thread_local())
}
