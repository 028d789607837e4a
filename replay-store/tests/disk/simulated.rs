//! A disk in memory that can lose power, report errors and be full.
//!
//! [`Simulated::lose_power`] decides at random which changes survive that no sync has made durable:
//!
//! - Of a file's unsynced writes, any subset survives. Each of them survives whole, or as any subset of its 512-byte sectors. The
//!   file's length may survive without the data.
//! - Of creations, renames and removals of names, the first ones survive, in their order, as in file systems that journal their
//!   metadata. A folder is removed name by name. Syncing a folder makes all changes durable up to its own last one.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use replay_store::log::files::{Files, FolderEntry, LockGuard, OpenFile};

const SECTOR: usize = 512;

type Number = u64;
/// All names; `None` is a folder.
type Names = BTreeMap<PathBuf, Option<Number>>;

/// Contents of a file: as the process sees them, as they are on the disk, and the changes between the two.
#[derive(Clone, Debug, Default)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Clone, Debug)]
enum Naming {
    Add(PathBuf, Option<Number>),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// The operation with this number (from the last [`Simulated::inject`]) fails once.
    Once(u64),
    /// The operation with this number and all later ones fail.
    From(u64),
    /// Power is lost at the operation with this number: this operation and all later ones fail, and the disk no longer changes.
    Power(u64),
}

#[derive(Debug, Default)]
struct State {
    names: Names,
    durable_names: Names,
    pending: Vec<Naming>,
    contents: BTreeMap<Number, Contents>,
    next: Number,
    capacity: Option<usize>,
    fault: Fault,
    operations: u64,
    faults: u64,
    /// Number of descriptors that can still be taken; `None` for no limit.
    descriptors: Option<u64>,
    /// True if every read fails.
    is_unreadable: bool,
    /// Number of reads that failed.
    failed_reads: u64,
}

/// The simulated disk. Clones share its state.
#[derive(Clone, Debug, Default)]
pub struct Simulated(Arc<Mutex<State>>);

impl Simulated {
    /// Sets the fault for the following operations, which are counted from 0 again.
    pub fn inject(&self, fault: Fault) {
        let mut state = self.0.lock();
        state.fault = fault;
        state.operations = 0;
        state.faults = 0;
    }

    /// Returns the number of operations since the last [`Simulated::inject`] that change something or make it durable, and the number of
    /// those that failed.
    pub fn operations(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.operations, state.faults)
    }

    /// Sets how often a file can be opened, or a folder listed, synced or removed, before the process has no file descriptor left;
    /// `None` for no limit. Open files can always be read and written.
    pub fn limit_descriptors(&self, left: Option<u64>) {
        self.0.lock().descriptors = left;
    }

    /// Makes every read fail if `fail` is true; otherwise reads succeed again.
    pub fn fail_reads(&self, fail: bool) {
        self.0.lock().is_unreadable = fail;
    }

    /// Returns the number of reads that failed.
    pub fn failed_reads(&self) -> u64 {
        self.0.lock().failed_reads
    }

    /// Sets the number of bytes that all files may take together; `None` for no limit.
    pub fn limit(&self, capacity: Option<usize>) {
        self.0.lock().capacity = capacity;
    }

    /// Returns the number of bytes that all files take.
    pub fn used(&self) -> usize {
        self.0.lock().used()
    }

    /// Returns the disk in a state in which it may be found after a loss of power.
    pub fn lose_power(&self, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let state = self.0.lock();
        let mut names = state.durable_names.clone();
        let survive = random.random_range(0..=state.pending.len());
        for naming in &state.pending[..survive] {
            naming.apply(&mut names);
        }
        let mut contents = BTreeMap::new();
        for (&number, file) in &state.contents {
            let mut bytes = file.durable.clone();
            for change in &file.pending {
                survivor(change, &mut bytes, &mut random);
            }
            contents.insert(
                number,
                Contents {
                    seen: bytes.clone(),
                    durable: bytes,
                    pending: Vec::new(),
                },
            );
        }
        Self(Arc::new(Mutex::new(State {
            durable_names: names.clone(),
            names,
            contents,
            next: state.next,
            ..State::default()
        })))
    }
}

/// Applies the part of one unsynced change that survives a loss of power.
fn survivor(change: &Change, bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    match change {
        Change::Length(length) => {
            if random.random_bool(0.5) {
                bytes.resize(*length as usize, 0);
            }
        }
        Change::Write(offset, written) => match random.random_range(0..4) {
            0 => {}
            1 => write(bytes, *offset, written),
            _ => {
                let mut at = 0;
                while at < written.len() {
                    // The range ends with the sector of the disk.
                    let place = *offset as usize + at;
                    let end = (at + SECTOR - place % SECTOR).min(written.len());
                    if random.random_bool(0.5) {
                        write(bytes, place as u64, &written[at..end]);
                    } else if random.random_bool(0.5) && bytes.len() < place + end - at {
                        // The length survives without its data.
                        bytes.resize(place + end - at, 0);
                    }
                    at = end;
                }
            }
        },
    }
}

fn write(bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
    let end = offset as usize + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset as usize..end].copy_from_slice(written);
}

impl Naming {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Add(path, number) => {
                names.entry(path.clone()).or_insert(*number);
            }
            Self::Remove(path) => names.retain(|name, _| !name.starts_with(path)),
            Self::Rename(from, to) => {
                let moved: Vec<PathBuf> = names
                    .keys()
                    .filter(|name| name.starts_with(from))
                    .cloned()
                    .collect();
                for name in moved {
                    let number = names.remove(&name).flatten();
                    let rest = name.strip_prefix(from).unwrap();
                    let target = if rest.as_os_str().is_empty() {
                        to.clone()
                    } else {
                        to.join(rest)
                    };
                    names.insert(target, number);
                }
            }
        }
    }

    fn touches(&self, folder: &Path) -> bool {
        let inside = |path: &Path| path.parent() == Some(folder);
        match self {
            Self::Add(path, _) | Self::Remove(path) => inside(path),
            Self::Rename(from, to) => inside(from) || inside(to),
        }
    }
}

impl State {
    fn used(&self) -> usize {
        let named: std::collections::BTreeSet<Number> = self.names.values().flatten().copied().collect();
        named.iter().map(|number| self.contents[number].seen.len()).sum()
    }

    /// Counts an operation and returns the injected error if there is one.
    fn operate(&mut self) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        let fails = match self.fault {
            Fault::None => false,
            Fault::Once(at) => number == at,
            Fault::From(at) | Fault::Power(at) => number >= at,
        };
        if fails {
            self.faults += 1;
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }

    /// Takes a file descriptor.
    fn take_descriptor(&mut self) -> io::Result<()> {
        match &mut self.descriptors {
            Some(0) => return Err(io::Error::from_raw_os_error(24)),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    /// Removes a name and all names below it one by one, the deepest first, as every file system does.
    fn remove(&mut self, path: &Path) -> io::Result<()> {
        if !self.names.contains_key(path) {
            return Err(missing());
        }
        let names: Vec<PathBuf> = self.names.keys().rev().cloned().collect();
        for below in names.into_iter().filter(|below| below.starts_with(path)) {
            self.operate()?;
            self.name(Naming::Remove(below));
        }
        Ok(())
    }

    fn is_off(&self) -> bool {
        matches!(self.fault, Fault::Power(at) if self.operations > at)
    }

    fn name(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.pending.push(naming);
    }

    fn free(&self) -> usize {
        self.capacity
            .map_or(usize::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    fn room_for(&self, more: usize) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if more > 0 && self.used() + more > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

#[derive(Debug)]
struct Handle {
    disk: Simulated,
    number: Number,
}

impl OpenFile for Handle {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.0.lock();
        if state.is_unreadable {
            state.failed_reads += 1;
            return Err(io::Error::from_raw_os_error(5));
        }
        let seen = &state.contents[&self.number].seen;
        let rest = seen.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let failed = state.operate();
        if state.is_off() {
            // Power is lost in the middle of the write, so a part of it may reach the disk.
            if state.operations == state_power(&state) + 1 {
                let change = Change::Write(offset, bytes.to_vec());
                state.contents.get_mut(&self.number).unwrap().pending.push(change);
            }
            return failed;
        }
        let grows = (offset as usize + bytes.len()).saturating_sub(state.contents[&self.number].seen.len());
        let full = state.room_for(grows);
        // A write that fails may write a part first. Overwriting needs no space.
        let kept = if failed.is_err() {
            &bytes[..bytes.len() / 2]
        } else if full.is_err() {
            &bytes[..state.free().min(bytes.len())]
        } else {
            bytes
        };
        let file = state.contents.get_mut(&self.number).unwrap();
        write(&mut file.seen, offset, kept);
        file.pending.push(Change::Write(offset, kept.to_vec()));
        failed.and(full)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.operate()?;
        let file = state.contents.get_mut(&self.number).unwrap();
        file.seen.resize(length as usize, 0);
        file.pending.push(Change::Length(length));
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().contents[&self.number].seen.len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.operate()?;
        let file = state.contents.get_mut(&self.number).unwrap();
        file.durable = file.seen.clone();
        file.pending.clear();
        Ok(())
    }
}

fn state_power(state: &State) -> u64 {
    match state.fault {
        Fault::Power(at) => at,
        _ => u64::MAX - 1,
    }
}

impl Files for Simulated {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.0.lock();
        state.take_descriptor()?;
        let number = match state.names.get(path) {
            Some(Some(number)) => *number,
            Some(None) => return Err(io::ErrorKind::IsADirectory.into()),
            None if create => {
                state.operate()?;
                state.room_for(1)?;
                let number = state.next;
                state.next += 1;
                state.contents.insert(number, Contents::default());
                state.name(Naming::Add(path.into(), Some(number)));
                number
            }
            None => return Err(missing()),
        };
        Ok(Box::new(Handle {
            disk: self.clone(),
            number,
        }))
    }

    fn lock(&self, _: &Path) -> io::Result<Option<LockGuard>> {
        Ok(Some(Box::new(())))
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let missing: Vec<&Path> = folder
            .ancestors()
            .filter(|above| !above.as_os_str().is_empty() && !state.names.contains_key(*above))
            .collect();
        for above in missing.into_iter().rev() {
            state.operate()?;
            state.name(Naming::Add(above.into(), None));
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        let mut state = self.0.lock();
        state.take_descriptor()?;
        if !state.names.contains_key(folder) {
            return Err(missing());
        }
        let inside = state
            .names
            .iter()
            .filter(|(path, _)| path.parent() == Some(folder));
        Ok(inside
            .map(|(path, number)| FolderEntry {
                path: path.clone(),
                is_folder: number.is_none(),
            })
            .collect())
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.lock().names.contains_key(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        if !state.names.contains_key(from) {
            return Err(missing());
        }
        state.operate()?;
        state.name(Naming::Rename(from.into(), to.into()));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.lock().remove(path)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.take_descriptor()?;
        state.remove(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.take_descriptor()?;
        state.operate()?;
        let own = state.pending.iter().rposition(|naming| naming.touches(folder));
        let durable: Vec<Naming> = state.pending.drain(..own.map_or(0, |own| own + 1)).collect();
        for naming in durable {
            naming.apply(&mut state.durable_names);
        }
        Ok(())
    }
}
