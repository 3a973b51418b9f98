//! The owner of a file's lock: a live process, or what a killed one has left in the kernel.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};

/// Returns a process that has a lock on this file; `None` if the kernel does not report it.
pub(super) fn of(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let device = metadata.dev();
    let name = format!("{:02x}:{:02x}:{}", major(device), minor(device), metadata.ino());
    find(&fs::read_to_string("/proc/locks").ok()?, &name)
}

/// Returns the owner in a line such as `1: FLOCK ADVISORY WRITE 30504 fe:00:950737 0 EOF`.
fn find(locks: &str, name: &str) -> Option<u32> {
    let owner = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
        let (pid, file) = (words.next()?, words.next()?);
        if file == name { pid.parse().ok() } else { None }
    };
    locks.lines().find_map(owner)
}

/// Returns whether this process runs. A process that was killed and not waited for does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may contain any characters.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_found_by_the_file_and_a_waiter_is_not_taken_for_it() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 fe:00:7 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 30504 fe:00:7 0 EOF\n\
            2: -> FLOCK  ADVISORY  WRITE 31 fe:00:8 0 EOF\n\
            3: FLOCK  ADVISORY  READ -1 fe:00:9 0 EOF\n";
        assert_eq!(find(locks, "fe:00:7"), Some(30504));
        assert_eq!(find(locks, "fe:00:9"), None);
        assert_eq!(find(locks, "fe:00:1"), None);
    }

    #[test]
    fn this_process_lives_and_one_that_ended_does_not() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while is_alive(child.id()) {}
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }
}
