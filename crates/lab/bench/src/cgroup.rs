//! A memory limit for everything: heap, page cache, threads of foreign libraries.
//!
//! The process makes a child cgroup, sets its limit, moves itself in, and undoes all of it at the end. Both
//! generations of the kernel's interface are supported; the one with the memory controller is used.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

/// The memory of the harness itself in addition to the engine's budget: program, stacks, latency histograms,
/// batches. The cgroup's limit is their sum, equally for every engine.
pub const HARNESS_BYTES: u64 = 32 << 20;

const PREFIX: &str = "nandex-bench-";

/// The interface of the kernel that enforces the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Version {
    /// One hierarchy per controller.
    #[serde(rename = "cgroup v1")]
    V1,
    /// The unified hierarchy.
    #[serde(rename = "cgroup v2")]
    V2,
}

/// The limit in force, as the report shows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryLimit {
    /// `none` or the version of the interface.
    pub kind: &'static str,
    /// The limit, read back from the kernel.
    pub bytes: Option<u64>,
    /// The maximum memory used under it, page cache included, if the kernel reports it.
    pub peak_bytes: Option<u64>,
}

impl MemoryLimit {
    /// Returns no limit.
    #[must_use]
    pub const fn none() -> Self {
        Self { kind: "none", bytes: None, peak_bytes: None }
    }
}

/// This process's membership in a cgroup of its own. Dropping it moves the process back and removes
/// the cgroup; a process that is killed leaves an empty one, which the next run removes.
#[derive(Debug)]
pub struct MemoryCgroup {
    version: Version,
    home: PathBuf,
    child: PathBuf,
}

impl MemoryCgroup {
    /// Moves this process under a limit of `bytes`. Call it before threads and tables are made: earlier
    /// allocations stay charged to the previous cgroup.
    ///
    /// # Errors
    /// Fails without a memory controller and without permission; the message names the refusing file and the
    /// remedy.
    pub fn enter(bytes: u64) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/mounts").context("cannot read /proc/mounts")?;
        let own =
            fs::read_to_string("/proc/self/cgroup").context("cannot read /proc/self/cgroup")?;
        let (version, home) = locate(&mounts, &own)?;
        Self::enter_at(version, &home, bytes)
    }

    fn enter_at(version: Version, home: &Path, bytes: u64) -> Result<Self> {
        let parent = match version {
            Version::V1 => home.to_path_buf(),
            Version::V2 => delegate(home)?,
        };
        sweep(&parent);
        let child = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&child).with_context(|| denied(&child))?;
        let group = Self { version, home: home.to_path_buf(), child };
        group.limit(bytes)?;
        write(&group.child.join("cgroup.procs"), &std::process::id().to_string())?;
        set_outside(Some(group.home.join("cgroup.procs")));
        Ok(group)
    }

    fn limit(&self, bytes: u64) -> Result<()> {
        let (limit, swap, swap_bytes) = match self.version {
            Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            Version::V2 => ("memory.max", "memory.swap.max", 0),
        };
        write(&self.child.join(limit), &bytes.to_string())?;
        // Kernels without swap accounting have no such file, and then there is no swap to exclude.
        let swap = self.child.join(swap);
        if swap.exists() { write(&swap, &swap_bytes.to_string()) } else { Ok(()) }
    }

    /// Returns the kernel's limit, and the maximum used so far.
    #[must_use]
    pub fn in_force(&self) -> MemoryLimit {
        let read = |name| fs::read_to_string(self.child.join(name)).ok()?.trim().parse().ok();
        let (kind, limit, peak) = match self.version {
            Version::V1 => ("cgroup v1", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
            Version::V2 => ("cgroup v2", "memory.max", "memory.peak"),
        };
        MemoryLimit { kind, bytes: read(limit), peak_bytes: read(peak) }
    }
}

/// The file of the processes of the cgroup that this process was in before it entered one of its own: the
/// place of a process that is no part of a benchmark.
static OUTSIDE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Returns the file to which a process writes its id to leave this process's limit, if there is one.
pub(crate) fn outside() -> Option<PathBuf> {
    OUTSIDE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn set_outside(procs: Option<PathBuf>) {
    *OUTSIDE.lock().unwrap_or_else(PoisonError::into_inner) = procs;
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        set_outside(None);
        // The only consequence of a failure here is an empty cgroup.
        let _ = fs::write(self.home.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.child);
    }
}

/// Finds the cgroup this process is in, in the hierarchy that controls memory.
fn locate(mounts: &str, own: &str) -> Result<(Version, PathBuf)> {
    let v1 = mount(mounts, |kind, options| {
        kind == "cgroup" && options.split(',').any(|option| option == "memory")
    });
    let (version, root, name) = match v1 {
        Some(root) => (Version::V1, root, own_name(own, "memory")),
        None => {
            let root = mount(mounts, |kind, _| kind == "cgroup2").ok_or_else(|| {
                anyhow!("no cgroup file system is mounted: mount one, or leave --cgroup out")
            })?;
            (Version::V2, root, own_name(own, ""))
        }
    };
    let home = root.join(name.unwrap_or("/").trim_start_matches('/'));
    // In a container the name is the host's and is meaningless here: then the mount is the process's own
    // cgroup.
    Ok((version, if home.is_dir() { home } else { root }))
}

fn mount(mounts: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        wanted(kind, options).then(|| PathBuf::from(path))
    })
}

fn own_name<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, name) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|found| found == controller).then_some(name)
    })
}

/// Returns the cgroup of version 2 that may have children with a memory limit: this process's own if it is
/// the root, else its parent, because a cgroup with processes cannot delegate controllers.
fn delegate(home: &Path) -> Result<PathBuf> {
    let controls = |dir: &Path| {
        let path = dir.join("cgroup.subtree_control");
        let has = |text: &str| text.split_whitespace().any(|name| name == "memory");
        fs::read_to_string(&path).is_ok_and(|text| has(&text))
            || fs::write(&path, "+memory").is_ok()
    };
    let candidates = [Some(home), home.parent()];
    let found = candidates.into_iter().flatten().find(|dir| controls(dir));
    found.map(Path::to_path_buf).ok_or_else(|| {
        anyhow!(
            "{} and the cgroup above it hand no memory controller on: run as root or under \
             `systemd-run --scope -p Delegate=memory`, or leave --cgroup out",
            home.display()
        )
    })
}

/// Removes the cgroups of killed runs. Only empty cgroups can be removed, so none in use is.
fn sweep(parent: &Path) {
    let names = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in names {
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(parent.join(&name));
        }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Err(error) = fs::write(path, text) {
        bail!("{}: {error}", denied(path));
    }
    Ok(())
}

fn denied(path: &Path) -> String {
    format!(
        "cannot set up the memory limit at {}; run as root, or leave --cgroup out",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_with_the_memory_controller_is_found() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /nowhere/memory cgroup rw,memory 0 0\n\
                      cgroup2 /nowhere/unified cgroup2 rw 0 0\n";
        let own = "5:cpu:/a\n4:memory:/b\n0::/c\n";
        let (version, home) = locate(mounts, own).unwrap();
        assert_eq!((version, home), (Version::V1, PathBuf::from("/nowhere/memory")));
        let unified = "cgroup2 /nowhere/unified cgroup2 rw 0 0\n";
        assert_eq!(locate(unified, own).unwrap().0, Version::V2);
        assert_eq!(own_name(own, "memory"), Some("/b"));
        assert_eq!(own_name(own, ""), Some("/c"));
    }

    #[test]
    fn a_machine_without_cgroups_is_told_so() {
        let error = locate("proc /proc proc rw 0 0\n", "").unwrap_err().to_string();
        assert!(error.contains("leave --cgroup out"), "{error}");
    }

    #[test]
    fn a_file_that_refuses_is_named_and_the_remedy_given() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("absent");
        let error = MemoryCgroup::enter_at(Version::V1, &home, 1 << 30).unwrap_err().to_string();
        assert!(error.contains("absent") && error.contains("run as root"), "{error}");
    }

    #[test]
    fn the_own_cgroup_hands_the_controller_on_when_it_can_and_its_parent_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("own");
        fs::create_dir(&home).unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        assert_eq!(delegate(&home).unwrap(), home, "a plain file takes the write");
        fs::remove_file(home.join("cgroup.subtree_control")).unwrap();
        fs::create_dir(home.join("cgroup.subtree_control")).unwrap();
        assert_eq!(delegate(&home).unwrap(), dir.path());
    }
}
