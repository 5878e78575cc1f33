//! What the servers of the tests have in common: a loopback port that is open when the server has
//! been made, a count of the connections, and an end that leaves no thread and no process behind.
//!
//! The port is opened here and not by the program that answers, which gets one connection each.
//! So the system picks a free port and no test has to wait until a program listens.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use process_wrap::std::{ChildWrapper, CommandWrap};

use crate::done;

/// How long a test waits for a connection that it knows will come.
const CONNECTION_LIMIT: Duration = Duration::from_secs(20);

/// A listening port on 127.0.0.1. Dropped, it ends every connection and the process group of every
/// program that was started for one.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    running: Arc<Running>,
    accepting: Option<JoinHandle<()>>,
}

/// What a server has to do with at the moment.
#[derive(Debug, Default)]
pub(crate) struct Running {
    state: Mutex<State>,
    connected: Condvar,
}

#[derive(Debug, Default)]
struct State {
    connections: usize,
    is_closing: bool,
    streams: Vec<TcpStream>,
    processes: Vec<Box<dyn ChildWrapper>>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens a port and gives each connection to `connected`, one after the other: it must not
    /// take time, but start a thread or a process.
    pub(crate) fn start(connected: impl Fn(&Arc<Running>, TcpStream) + Send + 'static) -> Self {
        let place = Path::new("127.0.0.1");
        let listener = done(
            "opening a port on",
            place,
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        );
        let address = done("reading the port of", place, listener.local_addr());
        let running = Arc::new(Running::default());
        let accepted = Arc::clone(&running);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !accepted.count() {
                    return;
                }
                connected(&accepted, done("accepting on", place, stream));
            }
        });
        Self {
            address,
            running,
            accepting: Some(accepting),
        }
    }

    /// The port, on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.running.state().connections
    }

    /// Waits until there were `count` connections.
    pub(crate) fn wait_for_connections(&self, count: usize) {
        let waiting = |state: &mut State| state.connections < count;
        let state = self.running.state();
        let waited = self
            .running
            .connected
            .wait_timeout_while(state, CONNECTION_LIMIT, waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let seen = state.connections;
        assert!(seen >= count, "{seen} of {count} connections were made");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.state().is_closing = true;
        // Accepting goes on until there is a connection; it looks at the flag then.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        self.running.end();
    }
}

impl Running {
    /// Counts one more connection. Whether the server still wants it.
    fn count(&self) -> bool {
        let mut state = self.state();
        if !state.is_closing {
            state.connections += 1;
            self.connected.notify_all();
        }
        !state.is_closing
    }

    /// Runs `answer` in a thread of its own and closes the connection after it, however it ends:
    /// what a client does wrong is the client's to notice.
    pub(crate) fn in_thread(
        &self,
        stream: TcpStream,
        answer: impl FnOnce(&TcpStream) -> io::Result<()> + Send + 'static,
    ) {
        let place = Path::new("a connection");
        let kept = done("sharing", place, stream.try_clone());
        let stream = Closing(stream);
        let thread = std::thread::spawn(move || {
            let _ = answer(&stream.0);
        });
        let mut state = self.state();
        state.streams.push(kept);
        state.threads.push(thread);
    }

    /// Starts `command` in a process group of its own, which ends with the server at the latest.
    /// `None` once the server is ending.
    pub(crate) fn spawn(&self, command: Command) -> Option<Pipes> {
        let mut state = self.state();
        if state.is_closing {
            return None;
        }
        state
            .processes
            .retain_mut(|process| !matches!(process.try_wait(), Ok(Some(_))));
        let program = std::path::PathBuf::from(command.get_program());
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        command.wrap(process_wrap::std::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::std::JobObject);
        let mut process = done("starting", &program, command.spawn());
        let pipes = (process.stdin().take(), process.stdout().take());
        state.processes.push(process);
        Some(pipes)
    }

    /// Starts `command` with the connection as its standard input and output.
    #[cfg(unix)]
    pub(crate) fn serve(&self, stream: TcpStream, mut command: Command) {
        let stream = std::os::fd::OwnedFd::from(stream);
        let place = Path::new("a connection");
        let output = done("sharing", place, stream.try_clone());
        command
            .stdin(stream)
            .stdout(output)
            .stderr(std::process::Stdio::null());
        self.spawn(command);
    }

    /// Ends everything, once no connection is accepted any more.
    fn end(&self) {
        let mut state = self.state();
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for mut process in state.processes.drain(..) {
            // Both fail if the group has ended by itself.
            let _ = process.start_kill();
            let _ = process.wait();
        }
        let threads = std::mem::take(&mut state.threads);
        // They may want to start a process, and learn under the lock that it is too late.
        drop(state);
        for thread in threads {
            let _ = thread.join();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is piped of a started program: its standard input and output.
pub(crate) type Pipes = (Option<ChildStdin>, Option<ChildStdout>);

/// A connection that is closed when it goes out of scope, though the server keeps a copy of it.
struct Closing(TcpStream);

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    /// The processes that have `word` in their command line or their environment.
    #[cfg(target_os = "linux")]
    fn processes_about(word: &str) -> Vec<String> {
        let names_it = |directory: &Path| {
            let line = std::fs::read(directory.join("cmdline")).unwrap_or_default();
            let environment = std::fs::read(directory.join("environ")).unwrap_or_default();
            let all = String::from_utf8_lossy(&[line.clone(), environment].concat()).into_owned();
            let shown = String::from_utf8_lossy(&line).replace('\0', " ");
            all.contains(word).then_some(shown)
        };
        let processes = std::fs::read_dir("/proc").unwrap();
        processes
            .filter_map(|entry| names_it(&entry.unwrap().path()))
            .collect()
    }

    /// Asserts that a process works for `server`, drops it, and asserts that none is left and that
    /// nobody listens. `word` is what tells those processes.
    #[cfg(target_os = "linux")]
    pub(crate) fn check_end<S>(server: S, port: u16, word: &str) {
        assert_ne!(processes_about(word), [""; 0], "nothing to end");
        drop(server);
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        // What was killed beside our own child ends when the system comes to it.
        let since = std::time::Instant::now();
        let mut left = processes_about(word);
        while !left.is_empty() && since.elapsed() < CONNECTION_LIMIT {
            std::thread::yield_now();
            left = processes_about(word);
        }
        assert_eq!(left, [""; 0]);
    }

    #[test]
    fn the_end_of_a_server_ends_its_connections_and_threads() {
        let server = Server::start(|running, stream| {
            running.in_thread(stream, |mut stream| stream.read(&mut [0]).map(drop));
        });
        let mut clients: Vec<TcpStream> = (0..3)
            .map(|_| TcpStream::connect(server.address).unwrap())
            .collect();
        server.wait_for_connections(3);
        let (address, running) = (server.address, Arc::clone(&server.running));
        drop(server);
        for client in &mut clients {
            assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        }
        TcpStream::connect(address).unwrap_err();
        assert_eq!(Arc::strong_count(&running), 1);
    }

    #[test]
    fn connections_are_counted_when_they_are_made() {
        let server = Server::start(|_, _| {});
        assert_eq!(server.connections(), 0);
        let _client = TcpStream::connect(server.address).unwrap();
        server.wait_for_connections(1);
        assert_eq!(server.connections(), 1);
    }
}
