//! What was said last of some threads, so that the same is not looked up again for each of their events.
//!
//! In: the name and the process of a thread, as an event has them. Out: whether that differs from what was said last of
//! this thread, as far as that is at hand. Cost: a comparison; two threads whose ids have the same place forget each
//! other.

use super::event_place::NamedThread;

/// Threads that are at hand.
const PLACES: usize = 256;
/// Bytes of a name that is at hand: the kernel's have 15.
const SHORT: usize = 16;

/// What was said of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    tid: i32,
    /// Below 0: nothing.
    pid: i32,
    length: usize,
    name: [u8; SHORT],
}

impl Said {
    fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or(&[])
    }
}

/// What was said last of some threads; see the module.
#[derive(Debug)]
pub(super) struct LatestThreads(Box<[Option<Said>; PLACES]>);

impl Default for LatestThreads {
    fn default() -> Self {
        LatestThreads(Box::new([None; PLACES]))
    }
}

impl LatestThreads {
    /// False where the name and the process of a thread, as far as they are known, are those that were said last.
    pub fn is_new(&mut self, thread: NamedThread<'_>) -> bool {
        let NamedThread { tid, mut pid, mut name } = thread;
        let Some(place) = self.0.get_mut(tid as usize % PLACES) else { return true };
        let before = place.filter(|said| said.tid == tid);
        if let Some(said) = &before {
            name = if name.is_empty() { said.name() } else { name };
            pid = if pid < 0 { said.pid } else { pid };
            if said.pid == pid && said.name() == name {
                return false;
            }
        }
        let mut said = Said { tid, pid, length: name.len(), name: [0; SHORT] };
        *place = match said.name.get_mut(..name.len()) {
            Some(copy) => {
                copy.copy_from_slice(name);
                Some(said)
            }
            None => None,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_new_is_false_for_what_was_said_last_of_a_thread() {
        let mut latest = LatestThreads::default();
        let mut is_new = |tid, pid, name: &str| latest.is_new(NamedThread { tid, pid, name: name.as_bytes() });
        assert!(is_new(7, 5, "a") && !is_new(7, 5, "a"));
        assert!(is_new(7, 5, "b") && is_new(7, 5, "a") && is_new(7, 6, "a") && !is_new(7, 6, "a"));
        // What is unknown says nothing.
        assert!(
            !is_new(7, -1, "a") && !is_new(7, 6, "") && is_new(7, 6, "b") && is_new(7, 5, "") && !is_new(7, 5, "b")
        );
        // One place for both.
        assert!(is_new(7 + PLACES as i32, 6, "") && is_new(7, 6, ""));
        assert!(is_new(-1, -1, "") && !is_new(-1, -1, ""));
        let long = "a name of more than sixteen bytes";
        assert!(is_new(7, 6, long) && is_new(7, 6, long));
        // A name as long as the place, and its begin.
        assert!(is_new(7, 6, &long[..16]) && !is_new(7, 6, &long[..16]) && is_new(7, 6, &long[..15]));
    }
}
