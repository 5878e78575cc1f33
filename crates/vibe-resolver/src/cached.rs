//! An index that is asked each question once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use vibe_core::{Index, PackageId, Requirements, Version};

/// The answers of an index so far.
pub(crate) struct Cached<'a, I> {
    index: &'a I,
    versions: RefCell<BTreeMap<PackageId, Rc<[Version]>>>,
    requirements: RefCell<BTreeMap<(PackageId, Version), Rc<Requirements>>>,
}

impl<'a, I: Index> Cached<'a, I> {
    pub(crate) fn new(index: &'a I) -> Self {
        Self {
            index,
            versions: RefCell::default(),
            requirements: RefCell::default(),
        }
    }

    /// Every version of `id`, lowest first; of two that differ only in build metadata the one with
    /// the higher metadata counts as higher.
    pub(crate) fn versions(&self, id: &PackageId) -> Result<Rc<[Version]>, I::Error> {
        if let Some(known) = self.versions.borrow().get(id) {
            return Ok(Rc::clone(known));
        }
        let mut versions = self.index.versions(id)?;
        versions.sort();
        versions.dedup();
        let versions = Rc::<[Version]>::from(versions);
        self.versions
            .borrow_mut()
            .insert(id.clone(), Rc::clone(&versions));
        Ok(versions)
    }

    /// What `version` of `id` asks for.
    pub(crate) fn requirements(
        &self,
        id: &PackageId,
        version: &Version,
    ) -> Result<Rc<Requirements>, I::Error> {
        let key = (id.clone(), version.clone());
        if let Some(known) = self.requirements.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let requirements = Rc::new(self.index.requirements(id, version)?);
        self.requirements
            .borrow_mut()
            .insert(key, Rc::clone(&requirements));
        Ok(requirements)
    }
}
