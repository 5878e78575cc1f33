//! The machine-wide store of package trees, by content.
//!
//! The store keeps each package tree once for all projects of a user, extracted and read-only, under
//! its content identity. Slots are made from it by reflink, copy or hard link. Nothing in it is
//! precious: whatever it lacks or loses is fetched again.
//!
//! ```text
//! <root>/v1/
//!   trees/<2 hex>/<62 hex>/   one tree: the digits are its identity
//!     listing                 its rows and the size of each file (listing.rs)
//!     files/...               the files
//!     durable                 empty: all of it was read and found whole after a reboot
//!   staging/<random>/         a tree being added: a lock of its owner, and the tree
//!   quarantine/               trees found damaged, and trees on their way out
//!   lock                      shared by runs that use trees, exclusive to remove some
//!   quarantine.lock           held while a damaged tree is moved away
//! ```
//!
//! **A tree appears whole, and never changes.** It is written in staging and moved into place by one
//! rename. Of two runs that add the same tree, the later takes what the earlier stored. What is
//! published is never written again, only moved away whole; a reader therefore finds a whole tree or
//! none. After `kill -9` only rubbish in staging remains. Its owner held a lock in it, which died
//! with the owner, so that a later run knows the rubbish from another's work.
//!
//! **The listing is not trusted, it is checked.** It must be spelled exactly as we write it and its
//! rows must hash to the identity that was asked for. Sizes and the boot are outside the identity;
//! a wrong one costs a needless look at the content, no more.
//!
//! **Files are proved before use.** A hard link gives every project a name of the store's own file,
//! and a program that opens one of them for writing changes them all (mode 0444 stops most, but not
//! the superuser). All store files have one fixed modification time, so a write shows as another
//! size or time; [`StoredTree::proved`] then reads the content. A write that hides both is found by
//! [`Store::verify`] only. Modes are set whatever the umask is: the first user of a tree does not
//! decide for the later ones. Two packages never share a file, so damage stays in one package and
//! one file can be executable in one and not in the other.
//!
//! **Nothing is synced to disk.** After a loss of power a tree can be listed and hold empty files.
//! The listing notes the boot under which it was written; the first use under another boot reads
//! everything once, and since what is read then comes from the disk, `durable` needs no sync either.
//! Where that mark cannot be written, each use reads everything. A system that names no boot counts
//! as another one.
//!
//! **Damage is moved to quarantine**, where nothing looks for trees, and the tree counts as absent.
//! Two runs can find the same damage; so that the later does not move away what the earlier has
//! already fetched anew, a tree is looked at again under `quarantine.lock` before it is moved. Where
//! the store cannot be written, damage is an error that names the file. Only where a directory cannot
//! be renamed, in the lower layer of a container's image, is it removed at once.
//!
//! **Removal waits for nobody and nobody waits for it.** A run holds a [`StoreUse`] while it needs
//! trees. [`Store::gc`] needs the exclusive lock to take trees out, which it does by renames; the
//! deletion itself comes after. If a run uses the store, no tree is removed, and that is said. The
//! age of the last use, noted at most once a day, is a second net where locks do not work.
//!
//! **Without permission to write**, everything that only reads works, and no write is tried.

mod collect;
mod error;
mod layout;
mod listing;
mod quarantine;
mod staged;
mod store;
mod stored;
#[cfg(test)]
mod testing;
mod usage;
mod verify;

pub use collect::{CleanOutcome, GcOutcome, GcPolicy};
pub use error::{Damage, DamagedFile, DamagedTree, Fault, StoreError};
pub use listing::ListingError;
pub use staged::StagedTree;
pub use store::{Store, StoreEntry};
pub use stored::{StoredFile, StoredTree};
pub use usage::StoreUse;
pub use verify::VerifyOutcome;

/// The modification time of every store file: 1 January 2000, 00:00 UTC, in seconds since 1970.
/// Any write gives another time, since no clock of a running system shows this one. Whole and even
/// seconds are what every file system can keep, and archivers and build tools take it for an
/// ordinary date, unlike 0.
pub const FILE_MTIME_SECONDS: i64 = 946_684_800;
