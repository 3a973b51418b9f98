//! Berkeley DB 5.3's hash table, the baseline of the BufferHash paper, through its C interface.
//!
//! * Pages of 4 KiB; the table is made for the expected number of entries, with the fill factor that
//!   the manual computes from page and entry size, so that it need not split its way up.
//! * The cache is three quarters of the budget; the page cache below has the rest.
//! * No environment, so no log, no locks and no transactions: the fastest way to load it. A lock here
//!   therefore lets one thread insert, or any number look up on the free-threaded handle. The load ends
//!   with `DB->sync`, which is timed. At `--durability always` each call is followed by one.
//! * A load in key order puts in bucket after bucket, so that each page is written once. Berkeley DB takes
//!   the bucket from the low bits of an FNV hash; were it another, the load would be slow and no less right.
//! * There is no batched call for a hash table; a batch is a loop. Batches are not sorted,
//!   because hash order is not key order.
//!
//! The structures below are those of `db.h` of version 5.3.28 on 64-bit Unix. Their offsets are checked
//! when this is compiled, and the library's version before the first of them is used.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::RwLock;

use anyhow::{Context, Result, bail, ensure};
use nandex_bench::order::Order;
use nandex_bench::subject::{Client, Durability, Spec, Subject};
use nandex_bench::values::{decode, encode};

const VERSION: (c_int, c_int, c_int) = (5, 3, 28);
const PAGE_BYTES: u32 = 4096;

const DB_HASH: c_int = 2;
const DB_CREATE: u32 = 0x1;
const DB_THREAD: u32 = 0x20;
const DB_DBT_USERMEM: u32 = 0x800;
const DB_NOTFOUND: c_int = -30988;

/// A key or a value in memory of the caller.
#[repr(C)]
struct Dbt {
    data: *mut c_void,
    size: u32,
    ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

type Transaction = *mut c_void;
type Transfer = unsafe extern "C" fn(*mut Db, Transaction, *mut Dbt, *mut Dbt, u32) -> c_int;
type SetNumber = unsafe extern "C" fn(*mut Db, u32) -> c_int;
type SetCache = unsafe extern "C" fn(*mut Db, u32, u32, c_int) -> c_int;
type Open = unsafe extern "C" fn(
    *mut Db,
    Transaction,
    *const c_char,
    *const c_char,
    c_int,
    u32,
    c_int,
) -> c_int;

/// The methods of a `DB` that are used here, each at its place; the rest is opaque.
#[repr(C)]
struct Db {
    before_close: [u8; 568],
    close: SetNumber,
    before_get: [u8; 56],
    get: Transfer,
    before_open: [u8; 368],
    open: Open,
    before_put: [u8; 8],
    put: Transfer,
    before_set_cachesize: [u8; 64],
    set_cachesize: SetCache,
    before_set_h_ffactor: [u8; 72],
    set_h_ffactor: SetNumber,
    before_set_h_nelem: [u8; 8],
    set_h_nelem: SetNumber,
    before_set_pagesize: [u8; 48],
    set_pagesize: SetNumber,
    before_sync: [u8; 96],
    sync: SetNumber,
}

const _: () = {
    assert!(size_of::<usize>() == 8 && size_of::<Dbt>() == 40);
    assert!(offset_of!(Db, close) == 568 && offset_of!(Db, get) == 632);
    assert!(offset_of!(Db, open) == 1008 && offset_of!(Db, put) == 1024);
    assert!(offset_of!(Db, set_cachesize) == 1096 && offset_of!(Db, set_h_ffactor) == 1176);
    assert!(offset_of!(Db, set_h_nelem) == 1192 && offset_of!(Db, set_pagesize) == 1248);
    assert!(offset_of!(Db, sync) == 1352);
};

#[link(name = "db-5.3")]
unsafe extern "C" {
    fn db_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
    fn db_create(db: *mut *mut Db, environment: *mut c_void, flags: u32) -> c_int;
    fn db_strerror(error: c_int) -> *const c_char;
}

/// An open hash table.
pub struct Bdb {
    handle: Handle,
    lock: RwLock<()>,
    always: bool,
    bucket_bits: u32,
    value_bytes: usize,
}

/// An owned `DB`, closed when dropped.
struct Handle(NonNull<Db>);

// SAFETY: the handle is opened with DB_THREAD, which makes its get, put and sync free-threaded.
unsafe impl Send for Handle {}
// SAFETY: as above; `Bdb::lock` also keeps inserts apart from everything else, because without an
// environment the library has no locks of its own between readers and a writer.
unsafe impl Sync for Handle {}

impl Bdb {
    /// Opens the table in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        check_version()?;
        let handle = Handle::create()?;
        let cache = spec.ram_bytes / 4 * 3;
        let gigabytes = u32::try_from(cache >> 30)?;
        let bytes = u32::try_from(cache & ((1 << 30) - 1))?;
        let entries = u32::try_from(spec.entries).unwrap_or(u32::MAX);
        let fill_factor = fill_factor(spec)?;
        let path = CString::new(dir.join("entries.db").as_os_str().as_bytes())?;
        let db = handle.0.as_ptr();
        let methods = handle.methods();
        // SAFETY: `db` is a live handle that is not open yet, which is when these may be called; the
        // methods come from it, and the path is a string that ends in zero and outlives the call.
        let codes = unsafe {
            [
                (methods.set_cachesize)(db, gigabytes, bytes, 1),
                (methods.set_pagesize)(db, PAGE_BYTES),
                (methods.set_h_ffactor)(db, fill_factor),
                (methods.set_h_nelem)(db, entries),
                (methods.open)(
                    db,
                    ptr::null_mut(),
                    path.as_ptr(),
                    ptr::null(),
                    DB_HASH,
                    DB_CREATE | DB_THREAD,
                    0o644,
                ),
            ]
        };
        codes.into_iter().try_for_each(|code| check("open", code))?;
        let always = spec.durability == Durability::Always;
        let bucket_bits = entries.div_ceil(fill_factor).max(2).next_power_of_two().ilog2();
        let value_bytes = spec.value_bytes;
        Ok(Self { handle, lock: RwLock::new(()), always, bucket_bits, value_bytes })
    }
}

/// Returns the fill factor, (page size - 32) / (key + value + 8), from the manual's chapter on hash tables. A
/// pair that is longer than a page has pages of its own.
fn fill_factor(spec: &Spec) -> Result<u32> {
    Ok(((PAGE_BYTES - 32) / u32::try_from(spec.entry_bytes() + 8)?).max(1))
}

impl Handle {
    fn create() -> Result<Self> {
        let mut db = ptr::null_mut();
        // SAFETY: `db` is a place for the handle; no environment is given.
        check("create", unsafe { db_create(&raw mut db, ptr::null_mut(), 0) })?;
        match NonNull::new(db) {
            Some(db) => Ok(Self(db)),
            None => bail!("Berkeley DB made no handle"),
        }
    }

    fn methods(&self) -> &Db {
        // SAFETY: the pointer came from db_create of the version whose layout `Db` is, the structure
        // lives until it is closed in drop, and its methods do not change.
        unsafe { self.0.as_ref() }
    }

    fn put(&self, key: u64, value: &mut [u8]) -> Result<()> {
        let mut key = key.to_le_bytes();
        let (mut key, mut value) = (dbt(&mut key)?, dbt(value)?);
        let put = self.methods().put;
        // SAFETY: the handle is open; both structures and the bytes they point to outlive the call.
        let code =
            unsafe { put(self.0.as_ptr(), ptr::null_mut(), &raw mut key, &raw mut value, 0) };
        check("put", code)
    }

    /// Reads the value of `key` into `value`, and returns the value's length if the key is present.
    fn get(&self, key: u64, value: &mut [u8]) -> Result<Option<usize>> {
        let mut key = key.to_le_bytes();
        let (mut key, mut value) = (dbt(&mut key)?, dbt(value)?);
        let get = self.methods().get;
        // SAFETY: as in put; the value's flags say that it is memory of ours of `ulen` bytes.
        let code =
            unsafe { get(self.0.as_ptr(), ptr::null_mut(), &raw mut key, &raw mut value, 0) };
        if code == DB_NOTFOUND {
            return Ok(None);
        }
        check("get", code)?;
        Ok(Some(value.size as usize))
    }

    fn sync(&self) -> Result<()> {
        let sync = self.methods().sync;
        // SAFETY: the handle is open.
        check("sync", unsafe { sync(self.0.as_ptr(), 0) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let close = self.methods().close;
        // SAFETY: a handle is closed once, whether its open succeeded or not, and not used after.
        let _ = unsafe { close(self.0.as_ptr(), 0) };
    }
}

fn dbt(bytes: &mut [u8]) -> Result<Dbt> {
    let (data, size) = (bytes.as_mut_ptr().cast(), u32::try_from(bytes.len())?);
    let (ulen, flags) = (size, DB_DBT_USERMEM);
    Ok(Dbt { data, size, ulen, dlen: 0, doff: 0, app_data: ptr::null_mut(), flags })
}

fn check_version() -> Result<()> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three places for numbers, as the function wants.
    unsafe { db_version(&raw mut major, &raw mut minor, &raw mut patch) };
    let found = (major, minor, patch);
    ensure!(
        found == VERSION,
        "Berkeley DB {found:?} is installed; this program knows {VERSION:?} only"
    );
    Ok(())
}

fn check(operation: &str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: db_strerror gives a string that ends in zero, for any number.
    let reason = unsafe { CStr::from_ptr(db_strerror(code)) };
    bail!("Berkeley DB's {operation} failed: {}", reason.to_string_lossy())
}

impl Subject for Bdb {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(BdbClient { bdb: self, value: vec![0; self.value_bytes] }))
    }

    fn sync(&self) -> Result<()> {
        self.handle.sync()
    }

    fn order(&self) -> Order {
        Order::Buckets { bits: self.bucket_bits }
    }
}

struct BdbClient<'a> {
    bdb: &'a Bdb,
    /// The buffer of one value.
    value: Vec<u8>,
}

impl Client for BdbClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.insert_many(&[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let Bdb { handle, lock, always, .. } = self.bdb;
        let _lock = lock.write().expect("no holder of this lock panics");
        for &(key, value) in pairs {
            encode(value, &mut self.value);
            handle.put(key, &mut self.value)?;
        }
        if *always { handle.sync() } else { Ok(()) }
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let _lock = self.bdb.lock.read().expect("no holder of this lock panics");
        let Some(bytes) = self.bdb.handle.get(key, &mut self.value)? else { return Ok(None) };
        let value =
            self.value.get(..bytes).context("a value came back longer than it was stored")?;
        decode(value, self.value.len()).map(Some)
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for &key in keys {
            found.push(self.get(key)?);
        }
        Ok(())
    }
}
