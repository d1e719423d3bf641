//! The owner of a recording that root makes.
//!
//! Recorders need rights that the recorded program and the interface do not. `sudo whyslow record` keeps root for the
//! recorders alone: COMMAND runs as the user who called sudo, and the recording belongs to that user. `getent` and `id`
//! find the user, since they know every source of users that the machine has.

use super::{RecordError, RecordingRequest};
use rustix::process::{Gid, Uid};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingUser {
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    pub groups: Vec<u32>,
    pub home: PathBuf,
}

impl RecordingUser {
    /// The user that the request names, else the one who called sudo; `None` where the process is not root, or that
    /// user is root.
    pub fn of(request: &RecordingRequest) -> Result<Option<RecordingUser>, RecordError> {
        let is_root = rustix::process::geteuid().is_root();
        let caller = std::env::var("SUDO_USER").ok().filter(|_| is_root);
        let Some(name) = request.user.clone().or(caller) else { return Ok(None) };
        let wrong = |reason: &str| RecordError::option(format!("--user {name}"), reason);
        if !is_root {
            return Err(wrong("only root can record for another user: use sudo"));
        }
        let printed = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).arg(&name).stdin(Stdio::null()).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let entry = printed("getent", &["passwd"]).ok_or_else(|| wrong("no such user"))?;
        let groups = printed("id", &["-G"]).unwrap_or_default();
        let user = RecordingUser::parse(&entry, &groups).ok_or_else(|| wrong("its entry cannot be read"))?;
        Ok((user.uid != 0).then_some(user))
    }

    /// A line of `/etc/passwd`, and numbers of groups.
    fn parse(entry: &str, groups: &str) -> Option<RecordingUser> {
        let mut fields = entry.lines().next()?.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        let home = PathBuf::from(fields.nth(1)?);
        let groups = groups.split_whitespace().filter_map(|group| group.parse().ok()).collect();
        Some(RecordingUser { name, uid, gid, groups, home })
    }

    /// Give this thread, and what it starts, the rights of the user. It cannot be taken back.
    fn become_user(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        rustix::thread::set_thread_groups(&groups)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
    }

    /// The command with what a login sets.
    fn prepared<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let sudo = ["SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND", "XDG_RUNTIME_DIR"];
        for name in sudo {
            command.env_remove(name);
        }
        command.env("HOME", &self.home).env("USER", &self.name).env("LOGNAME", &self.name)
    }

    /// Start a command as this user. The rights of a thread are its own: the thread that gives them up ends with this.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.prepared(command);
        std::thread::scope(|scope| {
            let started = std::thread::Builder::new().spawn_scoped(scope, || {
                self.become_user()?;
                command.spawn()
            });
            started?.join().unwrap_or_else(|_| Err(io::Error::other("the thread ended")))
        })
    }

    /// Become this program with other words, as this user; returns only if that fails.
    pub fn run_instead(&self, words: impl IntoIterator<Item = OsString>) -> io::Error {
        let program = std::env::current_exe();
        match program.and_then(|program| self.become_user().map(|()| program)) {
            Ok(program) => self.prepared(Command::new(program).args(words)).exec(),
            Err(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_read_from_its_entry() {
        let user = RecordingUser::parse("me:x:1000:1001:Me, there:/users/me:/bin/sh\n", "1001 27 x").unwrap();
        assert_eq!((user.name.as_str(), user.uid, user.gid), ("me", 1000, 1001));
        assert_eq!((user.groups, user.home), (vec![1001, 27], PathBuf::from("/users/me")));
        assert_eq!(RecordingUser::parse("me:x:1000", ""), None);
    }
}
