//! Devices that fail: the k-th write, sync, read or growth, once or from then on. The error comes back or
//! the volume is poisoned, nothing acknowledged as durable is lost, nothing panics and nothing hangs.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::device::Device;
use nandex::{Result, Table};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};

use crate::crash::{Past, Run, check};
use crate::support::{DURABILITIES, Dice, Setup, full_sweep};

/// No case takes a hundredth of this.
const HANG: Duration = Duration::from_secs(60);

/// Runs a case on a thread of its own, and fails when it does not end.
fn guarded(story: &str, case: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        case();
        // Nobody listens after a time-out.
        let _ = done.send(());
    });
    match ended.recv_timeout(HANG) {
        Err(RecvTimeoutError::Timeout) => panic!("{story}: hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            assert!(thread.join().is_ok(), "{story}: panicked");
        }
    }
}

/// Creates, works, and works on after reopening, whatever fails.
fn live(
    device: &Arc<SimDevice>,
    setup: Setup,
    past: &mut Past,
    fault: Option<Fault>,
) -> Result<()> {
    let shared = || Arc::clone(device) as Arc<dyn Device>;
    let mut run = Run { setup, past, dice: Dice(1) };
    for opening in 0..2 {
        let table = if opening == 0 { setup.create(shared())? } else { setup.open(shared())? };
        let mut result = run.work(&table, 40);
        if let (Err(error), Some(fault)) = (&result, fault) {
            refuses_from_now_on(&table, setup, fault, error);
        }
        let closed = table.close();
        if result.is_ok() {
            result = closed;
        }
        result?;
        run.past.synced();
    }
    Ok(())
}

/// After a failed write or sync nothing more is acknowledged.
fn refuses_from_now_on(table: &impl Table, setup: Setup, fault: Fault, first: &nandex::Error) {
    if fault.on == FaultOn::Read {
        return;
    }
    let error = table.insert(&setup.key(9_999), &setup.value(1)).unwrap_err().to_string();
    assert!(
        error.contains("refuses writes because an earlier one failed"),
        "{error} after {first}"
    );
    let error = table.sync().unwrap_err().to_string();
    assert!(error.contains("failed"), "{error} after {first}");
}

fn case(setup: Setup, fault: Fault) {
    let device = Arc::new(SimDevice::instant());
    device.arm(fault);
    let mut past = Past::default();
    let result = live(&device, setup, &mut past, Some(fault));
    let struck = device.seen(fault.on) >= fault.at;
    // Operations of background threads vary in number, so the fault may come too late to strike. A
    // failed read while filters are loaded ahead of time is tried again.
    if struck && fault.on != FaultOn::Read {
        assert!(result.is_err(), "{setup:?}, {fault:?}: nobody was told");
    }
    device.disarm();
    let story = format!("{setup:?}, {fault:?} ({result:?})");
    let table = match setup.open(device) {
        Err(error) if past.puts() == 0 => return println!("{story}: {error}"),
        table => table.unwrap_or_else(|error| panic!("{story}: {error}")),
    };
    check(&table, setup, &mut past, &story).unwrap_or_else(|error| panic!("{story}: {error}"));
}

fn sweep(setup: Setup, on: FaultOn, cases: u64) {
    let device = Arc::new(SimDevice::instant());
    live(&device, setup, &mut Past::default(), None).unwrap();
    let count = device.seen(on);
    let stride = if full_sweep() { 1 } else { (count / cases).max(1) };
    let mut dice = Dice(count);
    for start in (1..=count).step_by(usize::try_from(stride).unwrap()) {
        let at = start + dice.below(stride);
        let kind = if dice.below(2) == 0 { FaultKind::Io } else { FaultKind::NoSpace };
        let span = if dice.below(2) == 0 { FaultSpan::Once } else { FaultSpan::FromThenOn };
        let fault = Fault { on, at, kind, span };
        guarded(&format!("{setup:?}, {fault:?}"), move || case(setup, fault));
    }
}

fn sweep_setups(on: FaultOn) {
    for durability in DURABILITIES {
        for policy in [Policy::Fifo, Policy::Update] {
            sweep(
                Setup { roomy: false, flush_threads: 2, ..Setup::new(policy, durability) },
                on,
                12,
            );
        }
    }
}

#[test]
fn a_failed_write_poisons_and_loses_nothing_acknowledged() {
    sweep_setups(FaultOn::Write);
}

#[test]
fn a_failed_sync_poisons_and_loses_nothing_acknowledged() {
    sweep_setups(FaultOn::Sync);
}

#[test]
fn a_failed_read_is_told_and_loses_nothing() {
    sweep_setups(FaultOn::Read);
}

#[test]
fn a_failed_growth_is_told_and_loses_nothing() {
    sweep_setups(FaultOn::Grow);
}

#[test]
fn a_read_that_fails_once_fails_one_lookup_and_no_other() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]);
    let device = Arc::new(SimDevice::instant());
    let table = setup.create(Arc::clone(&device) as Arc<dyn Device>).unwrap();
    for key in 0..5000 {
        table.insert_u64(key, key).unwrap();
    }
    table.flush().unwrap();
    let (on, kind, span) = (FaultOn::Read, FaultKind::Io, FaultSpan::Once);
    device.arm(Fault { on, at: device.seen(on) + 1, kind, span });
    let failed: Vec<_> = (0..5000).filter_map(|key| table.get_u64(key).err()).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].to_string().contains("read of 1 page(s) at page"), "{}", failed[0]);
    device.arm(Fault { on, at: device.seen(on) + 5, kind, span });
    let keys: Vec<_> = (0..5000u64).map(|key| key.to_le_bytes()).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    table.get_many(&keys).unwrap_err();
    assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some));
    table.insert_u64(1, 2).unwrap();
    table.close().unwrap();
}
