//! Distinguishes file systems with data from pseudo file systems, whose content the kernel generates.
//!
//! Reading all of `/proc` never ends: `kmsg` blocks, and `kcore` pretends to be 128 TiB.

use std::collections::HashMap;
use std::path::Path;

/// Magic numbers of `statfs(2)`, with the names of the file systems.
const PSEUDO: [(u64, &str); 19] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0xcafe_4a11, "bpf"),
    (0x1cd1, "devpts"),
    (0x1980_0202, "mqueue"),
    (0x9584_58f6, "hugetlbfs"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x6265_6570, "configfs"),
    (0x6573_5543, "fusectl"),
    (0x6e73_6673, "nsfs"),
    (0x6759_6969, "rpc_pipefs"),
];

/// The file systems found so far, by device number.
#[derive(Debug, Default)]
pub(super) struct PseudoFileSystems {
    by_device: HashMap<u64, Option<&'static str>>,
}

impl PseudoFileSystems {
    /// Returns the name of the pseudo file system of `path`; `None` if it holds data or the call fails. Costs one
    /// system call for each file system.
    pub(super) fn name(&mut self, path: &Path, device: u64) -> Option<&'static str> {
        *self.by_device.entry(device).or_insert_with(|| {
            let status = rustix::fs::statfs(path).ok()?;
            // The field is signed on some machines; the number is 32 bits on all.
            let magic = u64::try_from(i128::from(status.f_type) & 0xffff_ffff).ok()?;
            PSEUDO.iter().find(|(known, _)| *known == magic).map(|&(_, name)| name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_made_up_and_a_temporary_directory_is_not() {
        let mut known = PseudoFileSystems::default();
        assert_eq!(known.name(Path::new("/proc"), 1), Some("proc"));
        let real = tempfile::tempdir().unwrap();
        assert_eq!(known.name(real.path(), 2), None);
        assert_eq!(known.name(Path::new("/nowhere"), 1), Some("proc"), "asked once per device");
    }
}
