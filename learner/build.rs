//! Adds the folder of libtorch in a release to those that `minuet-learner` searches: `torch/lib` next to the folder of the programs.
//! Those of a clone are in `.cargo/config.toml`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../torch/lib");
}
