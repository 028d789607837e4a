//! Cutting a process's connections from outside: its sockets are borrowed (`pidfd_getfd`, which whoever may debug the process may
//! do) and shut down, so that both ends lose what was on its way.

#[cfg(target_os = "linux")]
pub use linux::{can_be_cut, cut};

#[cfg(not(target_os = "linux"))]
pub fn can_be_cut(_: i32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn cut(_: i32) -> usize {
    0
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        net::{Shutdown, TcpStream},
        os::fd::OwnedFd,
    };

    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

    /// Whether this process may borrow the sockets of another.
    pub fn can_be_cut(pid: i32) -> bool {
        let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty());
        process.is_ok_and(|process| pidfd_getfd(process, 0, PidfdGetfdFlags::empty()).is_ok())
    }

    /// Shuts every TCP connection of a process down, and gives how many there were. What it listens on stays.
    pub fn cut(pid: i32) -> usize {
        let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let sockets = files.filter(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        });
        sockets
            .filter_map(|file| file.file_name().to_str()?.parse().ok())
            // One that was closed meanwhile needs no cut.
            .filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok())
            .filter(is_cut)
            .count()
    }

    fn is_cut(socket: &OwnedFd) -> bool {
        let Ok(connection) = socket.try_clone().map(TcpStream::from) else {
            return false;
        };
        // Neither what listens nor a local socket has a peer with an address.
        connection.peer_addr().is_ok() && connection.shutdown(Shutdown::Both).is_ok()
    }
}
