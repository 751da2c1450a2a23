use std::os::raw::c_int;

use hpcbench_model::collective::pingpong_peer;
use hpcbench_world::Failure;
use mpi::ffi;

use super::typed::Typed;
use super::{Arguments, returned};
use crate::{CallError, Exchange, Run};

/// Tag of messages, and of the answer that ends a window.
const MESSAGE: c_int = 1;
const ANSWER: c_int = 2;

/// One to and fro; or a window of messages one way and a short answer (OSU's bandwidth test); or a
/// window each way at once (its bidirectional one). As in OSU's, all messages of a window arrive in
/// the same buffer.
pub(super) fn prepare<'a>(a: Arguments, exchange: Exchange) -> Result<Run<'a>, Failure> {
    let Some(peer) = pingpong_peer(a.rank, a.ranks) else { return Ok(Box::new(|| Ok(()))) };
    let first = a.rank < peer;
    let message = a.typed(a.layout.param)?;
    let mut pair = Pair { peer: Arguments::peer(peer), a, message, requests: Vec::new() };
    let Some(window) = exchange.window else {
        return Ok(Box::new(move || {
            if first {
                pair.send(MESSAGE)?;
                pair.receive(MESSAGE)
            } else {
                pair.receive(MESSAGE)?;
                pair.send(MESSAGE)
            }
        }));
    };
    // SAFETY: an RSMPI constant, set when the library is loaded.
    let null = unsafe { ffi::RSMPI_REQUEST_NULL };
    let window = window as usize;
    pair.requests = vec![null; if exchange.two_way { 2 * window } else { window }];
    Ok(Box::new(move || match (exchange.two_way, first) {
        (true, _) => {
            (0..window).try_for_each(|slot| pair.start_receive(slot))?;
            (window..2 * window).try_for_each(|slot| pair.start_send(slot))?;
            pair.wait()
        }
        (false, true) => {
            (0..window).try_for_each(|slot| pair.start_send(slot))?;
            pair.wait()?;
            pair.receive_answer()
        }
        (false, false) => {
            (0..window).try_for_each(|slot| pair.start_receive(slot))?;
            pair.wait()?;
            pair.send_answer()
        }
    }))
}

/// This rank's end of a pair. Every call's buffers and type are borrowed or owned by the run.
struct Pair {
    a: Arguments,
    peer: c_int,
    message: Typed,
    requests: Vec<ffi::MPI_Request>,
}

impl Pair {
    fn send(&self, tag: c_int) -> Result<(), CallError> {
        let (count, datatype) = self.message.arguments();
        // SAFETY: the send buffer holds the message.
        returned("MPI_Send", unsafe {
            ffi::MPI_Send(self.a.send_at(0), count, datatype, self.peer, tag, self.a.comm)
        })
    }

    fn receive(&self, tag: c_int) -> Result<(), CallError> {
        let (count, datatype) = self.message.arguments();
        // SAFETY: the receive buffer holds the message.
        returned("MPI_Recv", unsafe {
            ffi::MPI_Recv(
                self.a.recv_at(0),
                count,
                datatype,
                self.peer,
                tag,
                self.a.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    fn send_answer(&self) -> Result<(), CallError> {
        // SAFETY: no bytes are read.
        returned("MPI_Send", unsafe {
            ffi::MPI_Send(self.a.send_at(0), 0, ffi::RSMPI_UINT8_T, self.peer, ANSWER, self.a.comm)
        })
    }

    fn receive_answer(&self) -> Result<(), CallError> {
        // SAFETY: no bytes are written.
        returned("MPI_Recv", unsafe {
            ffi::MPI_Recv(
                self.a.recv_at(0),
                0,
                ffi::RSMPI_UINT8_T,
                self.peer,
                ANSWER,
                self.a.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    fn start_send(&mut self, slot: usize) -> Result<(), CallError> {
        let (count, datatype) = self.message.arguments();
        let request = &mut self.requests[slot];
        // SAFETY: the send buffer holds the message and is not written before `wait`.
        returned("MPI_Isend", unsafe {
            ffi::MPI_Isend(
                self.a.send_at(0),
                count,
                datatype,
                self.peer,
                MESSAGE,
                self.a.comm,
                request,
            )
        })
    }

    fn start_receive(&mut self, slot: usize) -> Result<(), CallError> {
        let (count, datatype) = self.message.arguments();
        let request = &mut self.requests[slot];
        // SAFETY: the receive buffer holds the message and is not read before `wait`.
        returned("MPI_Irecv", unsafe {
            ffi::MPI_Irecv(
                self.a.recv_at(0),
                count,
                datatype,
                self.peer,
                MESSAGE,
                self.a.comm,
                request,
            )
        })
    }

    fn wait(&mut self) -> Result<(), CallError> {
        let count = self.requests.len() as c_int;
        // SAFETY: `count` requests, each started or null.
        returned("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(count, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }
}
