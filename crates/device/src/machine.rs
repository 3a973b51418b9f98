//! What the machine has: RAM, so that what can never fit is refused and not reserved, and cores.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Bytes of RAM of this machine.
#[must_use]
pub fn ram_bytes() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(found.mem_unit.into())
}

/// Cores that this process may use, as they were when it was first asked: to find out reads files of the system.
#[must_use]
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_ram_and_not_without_end() {
        let bytes = super::ram_bytes();
        assert!((1 << 26..1 << 50).contains(&bytes), "{bytes}");
    }
}
