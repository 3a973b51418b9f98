//! Programs in C, compiled against the headers and linked with the shared library.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nandex::device::{Create, FileDevice, FileOptions};
use nandex::{Volume, VolumeOptions};
use nandex_kvssd::{Config, DRIVE_NAME, Drive, IndexChoice, KeyOrder, StoreOptions};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the folder of `libkvapi.so`, which cargo builds for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    let built: Vec<_> = folders.filter(|folder| folder.join("libkvapi.so").exists()).collect();
    built.first().expect("cargo has built libkvapi.so").to_path_buf()
}

/// Compiles a program of `tests/c`.
fn compiled(name: &str, folder: &Path) -> PathBuf {
    compiled_from(Path::new(&format!("{HERE}/tests/c/{name}.c")), &folder.join(name))
}

/// Compiles a program, with every warning an error.
fn compiled_from(source: &Path, program: &Path) -> PathBuf {
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wno-write-strings",
            "-Werror",
            "-pthread",
        ])
        .arg(format!("-I{HERE}/include"))
        .arg(source)
        .arg("-o")
        .arg(program)
        .arg(format!("-L{}", library().display()))
        .arg("-lkvapi")
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program.to_path_buf()
}

/// Runs a program, and returns whether it succeeded and its output. It finds the library without `LD_LIBRARY_PATH`:
/// cargo's own paths may lead to an older one.
fn run(program: &Path, uri: &str) -> (bool, String) {
    let output = Command::new(program).arg(uri).env_remove("LD_LIBRARY_PATH").output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn succeeds(program: &Path, uri: &str) {
    let (succeeded, said) = run(program, uri);
    assert!(succeeded, "{said}");
}

/// Creates a drive in a file, as `nandex kvssd create` does.
fn drive_in(path: &Path) {
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = FileDevice::open(path, &options).unwrap();
    let volume = Volume::create(
        Arc::new(device),
        VolumeOptions { hash_key: Some(42), ..VolumeOptions::default() },
    )
    .unwrap();
    let config = Config { pairs_max: 20_000, key_bytes_min: 1, ..Config::of_capacity(64 << 20) };
    let index = IndexChoice { kind: "rhik", ram_bytes: None };
    let drive = Drive::create(&volume, DRIVE_NAME, config, index).unwrap();
    drive.create_key_space("main", 0, KeyOrder::None).unwrap();
    let main = drive.open_key_space("main").unwrap();
    main.store(b"cat.jpg", b"the bytes of a cat", StoreOptions::default()).unwrap();
    main.close().unwrap();
    drive.close().unwrap();
    volume.checkpoint().unwrap();
}

fn runs_in_ram_and_in_a_file(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(name, folder.path());
    succeeds(&program, "/dev/kvemul");
    let file = folder.path().join("drive.nandex");
    drive_in(&file);
    succeeds(&program, file.to_str().unwrap());
}

#[test]
fn every_call_gives_and_refuses_what_the_header_says() {
    runs_in_ram_and_in_a_file("calls");
}

#[test]
fn asynchronous_calls_end_once_each_on_any_thread() {
    runs_in_ram_and_in_a_file("later");
}

#[test]
fn the_example_of_the_page_runs() {
    let page =
        std::fs::read_to_string(format!("{HERE}/../../../docs/how-to/kvssd-from-programs.md"))
            .unwrap();
    let fence = page.split("```c\n").nth(1).unwrap();
    let example = fence.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.nandex");
    drive_in(&file);
    let example = example.replace("photos.nandex", file.to_str().unwrap());
    let (head, tail) = ("#include <kvs_api.h>\nint main(void) {\nchar buffer[64];\n", "}\n");
    let source = folder.path().join("example.c");
    let check = "return value.length != 18 || memcmp(buffer, \"the bytes of a cat\", 18) != 0;\n";
    std::fs::write(&source, [head, &example, check, tail].concat()).unwrap();
    succeeds(&compiled_from(&source, &folder.path().join("example")), "");
}

#[test]
fn a_file_without_a_drive_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("later", folder.path());
    let file = folder.path().join("text");
    std::fs::write(&file, "no drive").unwrap();
    let (succeeded, said) = run(&program, file.to_str().unwrap());
    assert!(!succeeded && said.contains("0x13") && said.contains("/text: "), "{said}");
}
