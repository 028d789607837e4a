//! Cuts the connections of another process: its sockets are duplicated with `pidfd_getfd`, which needs the right to debug the
//! process, and shut down, so that both ends lose data in transit.

use std::{
    fs,
    net::{Shutdown, TcpStream},
    os::fd::OwnedFd,
};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// True if this process may duplicate the sockets of the process `pid`.
pub fn can_be_cut(pid: i32) -> bool {
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty());
    process.is_ok_and(|process| pidfd_getfd(process, 0, PidfdGetfdFlags::empty()).is_ok())
}

/// Shuts down every TCP connection of a process and returns their number. Listening sockets stay open.
pub fn cut(pid: i32) -> usize {
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_socket = |target: std::path::PathBuf| target.to_string_lossy().starts_with("socket:");
    files
        .filter(|file| fs::read_link(file.path()).is_ok_and(is_socket))
        .filter_map(|file| file.file_name().to_str()?.parse().ok())
        // An error means that the connection was closed in between.
        .filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok())
        .filter(is_cut)
        .count()
}

fn is_cut(socket: &OwnedFd) -> bool {
    let Ok(connection) = socket.try_clone().map(TcpStream::from) else {
        return false;
    };
    // Listening sockets and local sockets have no peer with an address.
    connection.peer_addr().is_ok() && connection.shutdown(Shutdown::Both).is_ok()
}
