//! A server's handlers, as the protocols call them.

use crate::exchange::Exchange;
use crate::fields::Head;
use crate::handler::{Handler, Middleware};
use crate::refusal::Refused;
use crate::request::Request;
use crate::shared::{Handled, Serve, Shared};
use pirn::thread::Panic;
use std::fmt;
use std::sync::Arc;

/// See the module's documentation.
pub(crate) struct Handlers {
    pub(super) handler: Box<Handler>,
    /// Is told of requests that no handler sees.
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    pub(super) shared: Arc<Shared>,
}

impl<C> Serve<C> for Handlers
where
    Exchange: From<Box<C>>,
    Box<C>: From<Exchange>,
{
    fn handle(&self, head: Head, connection: Box<C>) -> Handled<C> {
        let mut request = Request::new(head, connection.into());
        request.seat().begin_handler();
        let response = Panic::catch(|| (self.handler)(&mut request)).ok();
        let is_late = request.seat().end_handler();
        let (exchange, trailers) = request.end();
        Handled {
            connection: exchange.into(),
            response,
            is_late,
            trailers,
        }
    }

    fn refused(&self, refused: &Refused<'_>) {
        self.middleware.iter().for_each(|it| it.refused(refused));
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
