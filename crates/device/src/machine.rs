//! How much RAM the machine has, so that what can never fit is refused and not reserved.

/// Bytes of RAM of this machine.
#[must_use]
pub fn ram_bytes() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(found.mem_unit.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_ram_and_not_without_end() {
        let bytes = super::ram_bytes();
        assert!((1 << 26..1 << 50).contains(&bytes), "{bytes}");
    }
}
