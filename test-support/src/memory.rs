//! Memory that a piece of work takes: [`peak_memory`]. The allocator of every test program that links this crate counts the bytes of
//! each thread, so that other tests in the process do not disturb the figure.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Bytes allocated minus bytes freed by this thread.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// Largest value of `LIVE` since the last reset.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // The counters of a thread that ends are gone before its last memory is freed.
    let counted = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        live.get()
    });
    if let Ok(live) = counted {
        PEAK.try_with(|peak| peak.set(peak.get().max(live))).ok();
    }
}

#[allow(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one only counts, and calls the system's"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Calls `work`, and returns its result with the maximum number of bytes that this thread held meanwhile, beyond those that it held
/// before. Memory that is reserved and never written counts too; memory of libraries in other languages does not.
pub fn peak_memory<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_freed_or_never_written_counts() {
        let (held, peak) = peak_memory(|| {
            drop(Vec::<u8>::with_capacity(5 << 20));
            vec![1_u8; 1 << 20]
        });
        assert_eq!(held.len(), 1 << 20);
        assert!((5 << 20..6 << 20).contains(&peak), "{peak}");
        let (_, peak) = peak_memory(|| drop(held));
        assert_eq!(peak, 0);
    }
}
