//! The RAM that this process takes, as the kernel counts it.

/// Returns the most RAM that the process has had at once, in bytes; `None` where the kernel does not say. This is more
/// than the RAM that a verb states for its data: it includes the program itself.
pub fn resident_peak_bytes() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the line `VmHWM:  1234 kB`.
fn peak_of(status: &str) -> Option<u64> {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_kib_and_left_out_where_there_is_none() {
        let status = "Name:\tnandex\nVmPeak:\t  90 kB\nVmHWM:\t   1234 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(peak_of(status), Some(1234 << 10));
        assert_eq!(peak_of("Name:\tnandex\n"), None);
        assert_eq!(peak_of("VmHWM:\t12 pages\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_is_used_is_counted() {
        let before = resident_peak_bytes().unwrap();
        let used = vec![1_u8; usize::try_from(before).unwrap() + (8 << 20)];
        assert!(resident_peak_bytes().unwrap() >= used.len() as u64);
    }
}
