//! Which handler serves a request.

use crate::handler::{Handler, IntoHandler, Middleware, with_state, within};
use crate::request::{Captured, Request};
use crate::response::{IntoResponse, Response};
use http::header::{ALLOW, HeaderValue};
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use std::sync::Arc;
use std::{fmt, mem};

/// The handlers of one path, by method.
#[derive(Default)]
struct Methods {
    /// `None`: of the methods that have none of their own.
    handlers: Vec<(Option<Method>, Arc<Handler>)>,
    /// Serves requests of other methods, in place of 405.
    not_allowed: Option<Arc<Handler>>,
    /// The middleware of nested routers, around what serves those requests otherwise.
    around_refusal: Vec<Arc<dyn Middleware>>,
}

fn method_not_allowed(_: &mut Request) -> Response {
    StatusCode::METHOD_NOT_ALLOWED.into_response()
}

impl Methods {
    /// Returns the handler of a method. The handler of `GET` serves `HEAD` too, without the body;
    /// the handler of all methods serves those that have none of their own.
    fn find(&self, method: &Method) -> Option<&Arc<Handler>> {
        let of = |wanted: Option<&Method>| {
            let mut entries = self.handlers.iter();
            entries.find(|(method, _)| method.as_ref() == wanted)
        };
        let of_get = || (*method == Method::HEAD).then(|| of(Some(&Method::GET)))?;
        let found = of(Some(method)).or_else(of_get).or_else(|| of(None));
        found.map(|(_, handler)| handler)
    }

    /// Serves a request whose method has no handler.
    fn refuse(&self, request: &mut Request) -> Response {
        let mut response = match &self.not_allowed {
            Some(handler) => handler(request),
            None => method_not_allowed(request),
        };
        response.headers.insert(ALLOW, self.allowed());
        response
    }

    /// Returns the value of `Allow`.
    fn allowed(&self) -> HeaderValue {
        let methods = self.handlers.iter().flat_map(|(method, _)| method.as_ref());
        let mut names = Vec::from_iter(methods);
        if names.contains(&&Method::GET) && !names.contains(&&Method::HEAD) {
            names.push(&Method::HEAD);
        }
        let names = Vec::from_iter(names.into_iter().map(Method::as_str));
        // A method is a token, which a value may have.
        HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static(""))
    }
}

/// Routes, and the middleware around them: a part of a [`Server`](crate::Server), to
/// [nest](crate::Server::nest) or [merge](crate::Server::merge).
///
/// It has the methods of a server that add routes. Its [state](Self::with_state) is its own; to
/// share one, give both an [`Arc`] of it.
///
/// # Examples
/// ```
/// use pirn_http::{Error, Handler, Request, Response, Router, Server, Status};
/// fn admins(request: &mut Request, inner: &Handler) -> Result<Response, Error> {
///     match request.header("authorization") {
///         Some("Bearer secret") => Ok(inner(request)),
///         _ => Err(Status::UNAUTHORIZED.into()),
///     }
/// }
/// let admin = Router::new().get("/users", || "all users").with(admins);
/// let client = Server::new().get("/", || "welcome").nest("/admin", admin).client();
/// assert_eq!(client.get("/").text(), "welcome");
/// assert_eq!(client.get("/admin/users").status, Status::UNAUTHORIZED);
/// ```
#[must_use = "a router is nested in a server"]
pub struct Router<S = ()> {
    state: Arc<S>,
    paths: Vec<(Arc<str>, Methods)>,
    by_path: matchit::Router<usize>,
    /// Serve what no route serves, by the prefix.
    fallbacks: Vec<(String, Arc<Handler>)>,
    not_allowed: Option<Arc<Handler>>,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl Default for Router {
    fn default() -> Router {
        Router::new()
    }
}

impl Router {
    /// Returns a router without routes.
    pub fn new() -> Router {
        Router::with_state(())
    }
}

impl<S: Send + Sync + 'static> Router<S> {
    /// Returns a router without routes, whose handlers may take this state.
    pub fn with_state(state: S) -> Router<S> {
        Router {
            state: Arc::new(state),
            paths: Vec::new(),
            by_path: matchit::Router::new(),
            fallbacks: Vec::new(),
            not_allowed: None,
            middleware: Vec::new(),
        }
    }

    fn routes(&mut self) -> &mut Router<S> {
        self
    }

    /// Adds a handler. `None`: of all methods that have none.
    ///
    /// # Panics
    /// If the pattern is invalid, conflicts with another route, or already has a handler for this
    /// method.
    #[track_caller]
    pub(crate) fn add<A>(
        &mut self,
        method: Option<Method>,
        path: &str,
        handler: impl IntoHandler<S, A>,
    ) {
        let handler = with_state(&self.state, handler);
        self.add_shared(method, path, handler);
    }

    #[track_caller]
    fn add_shared(&mut self, method: Option<Method>, path: &str, handler: Arc<Handler>) {
        let methods = &mut self.methods(path).handlers;
        assert!(
            !methods.iter().any(|(known, _)| *known == method),
            "the route {path} has a handler of this method already"
        );
        methods.push((method, handler));
    }

    /// Returns the handlers of a path.
    #[track_caller]
    fn methods(&mut self, path: &str) -> &mut Methods {
        let known = self.paths.iter().position(|(known, _)| **known == *path);
        let index = known.unwrap_or_else(|| {
            let index = self.paths.len();
            if let Err(error) = self.by_path.insert(path, index) {
                panic!("the route {path}: {error}");
            }
            self.paths.push((path.into(), Methods::default()));
            index
        });
        &mut self.paths[index].1
    }

    /// Adds a handler for a path without its last slash, for that with it, and for all beneath it,
    /// which the route calls `rest`. `None`: for all methods.
    #[cfg(any(feature = "files", feature = "tower"))]
    #[track_caller]
    pub(crate) fn add_beneath<A>(
        &mut self,
        method: Option<Method>,
        prefix: &str,
        rest: &str,
        handler: impl IntoHandler<S, A>,
    ) {
        let handler = with_state(&self.state, handler);
        let prefix = prefix.trim_end_matches('/');
        let below = ["/".to_owned(), format!("/{rest}")].map(|end| format!("{prefix}{end}"));
        let own = Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty());
        for path in own.into_iter().chain(below) {
            self.add_shared(method.clone(), &path, Arc::clone(&handler));
        }
    }

    /// Sets the handler of what no route serves.
    pub(crate) fn set_fallback<A>(&mut self, handler: impl IntoHandler<S, A>) {
        let handler = with_state(&self.state, handler);
        self.fallbacks.insert(0, (String::new(), handler));
    }

    /// Sets the handler of methods for which a path has none.
    pub(crate) fn set_not_allowed<A>(&mut self, handler: impl IntoHandler<S, A>) {
        self.not_allowed = Some(with_state(&self.state, handler));
    }

    /// Adds middleware around all others.
    pub(crate) fn add_middleware(&mut self, middleware: Arc<dyn Middleware>) {
        self.middleware.push(middleware);
    }

    /// Adds the routes of another router, each within its middleware.
    #[track_caller]
    pub(crate) fn add_all<T>(&mut self, prefix: &str, inner: Router<T>) {
        let around = |handler| within(&inner.middleware, handler);
        let not_allowed = inner.not_allowed.clone();
        for (path, methods) in inner.paths {
            let path = match &*path {
                "/" if !prefix.is_empty() => prefix.to_owned(),
                path => format!("{prefix}{path}"),
            };
            for (method, handler) in methods.handlers {
                self.add_shared(method, &path, around(handler));
            }
            let mut around_refusal = methods.around_refusal;
            around_refusal.extend(inner.middleware.iter().cloned());
            let outer = self.methods(&path);
            match methods.not_allowed.or_else(|| not_allowed.clone()) {
                Some(handler) => outer.not_allowed = Some(within(&around_refusal, handler)),
                None => outer.around_refusal = around_refusal,
            }
        }
        let fallbacks = inner.fallbacks.into_iter();
        self.fallbacks.extend(
            fallbacks.map(|(below, handler)| (format!("{prefix}{below}"), around(handler))),
        );
    }

    /// Returns the routes as they serve, and the middleware that is around all of them.
    pub(crate) fn into_routes(self) -> (Routes, Vec<Arc<dyn Middleware>>) {
        let mut paths = self.paths;
        for (_, methods) in &mut paths {
            if methods.not_allowed.is_none() {
                let around = mem::take(&mut methods.around_refusal);
                let default = || (!around.is_empty()).then(|| Arc::new(method_not_allowed) as _);
                let refusal = self.not_allowed.clone().or_else(default);
                methods.not_allowed = refusal.map(|handler| within(&around, handler));
            }
        }
        let mut fallbacks = matchit::Router::new();
        for (prefix, handler) in self.fallbacks {
            // Of two with the same prefix the first one serves.
            for end in ["", "/", "/{*rest}"] {
                let _ = fallbacks.insert(format!("{prefix}{end}"), Arc::clone(&handler));
            }
        }
        let routes = Routes {
            paths,
            by_path: self.by_path,
            fallbacks,
        };
        (routes, self.middleware)
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.paths.iter().map(|(path, _)| path);
        f.debug_list().entries(paths).finish()
    }
}

/// The routes of a server that serves.
pub(crate) struct Routes {
    paths: Vec<(Arc<str>, Methods)>,
    by_path: matchit::Router<usize>,
    fallbacks: matchit::Router<Arc<Handler>>,
}

impl Routes {
    /// Returns the paths of all routes.
    pub(crate) fn paths(&self) -> Box<[Arc<str>]> {
        let paths = self.paths.iter();
        paths.map(|(path, _)| Arc::clone(path)).collect()
    }

    /// Handles a request.
    pub(crate) fn handle(&self, request: &mut Request) -> Response {
        let Ok(found) = self.by_path.at(request.uri.path()) else {
            return match self.fallbacks.at(request.uri.path()) {
                Ok(found) => (found.value)(request),
                Err(_) => StatusCode::NOT_FOUND.into_response(),
            };
        };
        let (_, methods) = &self.paths[*found.value];
        let decode = |value: &str| {
            let decoded = percent_decode_str(value).decode_utf8();
            decoded.ok().map(|text| text.into_owned())
        };
        let captured = found.params.iter();
        let captured = captured.map(|(name, value)| (name.to_owned(), decode(value)));
        let captured = Captured(captured.collect());
        request.route = Some(*found.value);
        request.captured = captured;
        match methods.find(&request.method) {
            Some(handler) => handler(request),
            None => methods.refuse(request),
        }
    }
}

/// Defines the methods that add routes, for a type that has a [`Router`].
macro_rules! routing {
    ($type:ident) => {
        impl<S: Send + Sync + 'static> $type<S> {
            /// Adds a [handler](IntoHandler) for a method and a path. Parts of the path in braces
            /// match one segment, `{*rest}` matches all that follows.
            ///
            /// # Panics
            /// If the pattern is invalid, conflicts with another route, or already has a handler
            /// for this method.
            #[track_caller]
            pub fn route<A>(
                mut self,
                method: Method,
                path: &str,
                handler: impl IntoHandler<S, A>,
            ) -> Self {
                self.routes().add(Some(method), path, handler);
                self
            }

            routing!(@ get GET "`GET`, and for `HEAD`, whose body is left out");
            routing!(@ head HEAD "`HEAD`, in place of the one for `GET`");
            routing!(@ post POST "`POST`");
            routing!(@ put PUT "`PUT`");
            routing!(@ patch PATCH "`PATCH`");
            routing!(@ delete DELETE "`DELETE`");
            routing!(@ options OPTIONS "`OPTIONS`");

            /// Adds a handler for all methods of a path that have none of their own.
            ///
            /// # Panics
            /// As [`route`](Self::route).
            #[track_caller]
            pub fn any<A>(mut self, path: &str, handler: impl IntoHandler<S, A>) -> Self {
                self.routes().add(None, path, handler);
                self
            }

            /// Adds a handler of WebSockets: it gets each that is opened for a path, on the
            /// connection's own thread. The socket is closed when it returns.
            ///
            /// For what depends on the request, or the state, there is
            /// [`Request::websocket`](crate::Request::websocket).
            ///
            /// # Panics
            /// As [`route`](Self::route).
            #[cfg(feature = "websocket")]
            #[track_caller]
            pub fn websocket<F>(self, path: &str, handler: F) -> Self
            where
                F: Fn(crate::websocket::WebSocket) -> std::io::Result<()> + Send + Sync + 'static,
            {
                let handler = Arc::new(handler);
                self.get(path, move |request: &mut Request| {
                    let handler = Arc::clone(&handler);
                    request.websocket(move |socket| handler(socket))
                })
            }

            /// Serves the files of a folder beneath a path, by `GET` and `HEAD`.
            ///
            /// # Panics
            /// As [`route`](Self::route).
            #[cfg(feature = "files")]
            #[track_caller]
            pub fn files(mut self, path: &str, files: crate::files::Files) -> Self {
                let handler = crate::files::handler(files);
                let routes = self.routes();
                routes.add_beneath(Some(Method::GET), path, "{*file}", handler);
                self
            }

            /// Serves all requests beneath a path, of all methods, by a service of `tower`: a
            /// router of axum, for example. It gets the whole path.
            ///
            /// The service's future runs on the request's thread, by
            /// [`block_on_interruptible`](pirn::block_on_interruptible), so that one that waits
            /// holds up no other request, and one that is interrupted is dropped. What needs the
            /// context of an async runtime needs that here too: enter it in the service.
            ///
            /// Bodies are streams both ways. While the service waits for the next bytes of the
            /// request's body, and the client sends none, the response does not go on. Trailers are
            /// left out, and connections are not upgraded.
            ///
            /// # Panics
            /// As [`route`](Self::route).
            ///
            /// # Examples
            /// ```
            /// use axum::{Router, extract::Path, routing::get};
            /// use pirn_http::Server;
            /// let hello = |Path(name): Path<String>| async move { format!("Hello, {name}!") };
            /// let router = Router::new().route("/api/{name}", get(hello));
            /// let server = Server::new().service("/api", router);
            /// assert_eq!(server.client().get("/api/you").text(), "Hello, you!");
            /// ```
            #[cfg(feature = "tower")]
            #[track_caller]
            pub fn service<T, B>(mut self, path: &str, service: T) -> Self
            where
                T: tower_service::Service<
                        http::Request<crate::tower::RequestBody>,
                        Response = http::Response<B>,
                        Error: Into<Box<dyn std::error::Error + Send + Sync>>,
                    > + Clone
                    + Send
                    + Sync
                    + 'static,
                B: http_body::Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
            {
                let handler = crate::tower::handler(service);
                self.routes().add_beneath(None, path, "{*path}", handler);
                self
            }

            /// Sets the handler of requests for which there is no route, in place of 404. The
            /// fallback of a nested router serves the paths beneath its prefix.
            ///
            /// # Examples
            /// ```
            /// use pirn_http::{Request, Server, Status};
            /// let client = Server::new()
            ///     .get("/", || "home")
            ///     .fallback(|request: &mut Request| {
            ///         (Status::NOT_FOUND, format!("there is no {}", request.uri.path()))
            ///     })
            ///     .client();
            /// assert_eq!(client.get("/nowhere").text(), "there is no /nowhere");
            /// ```
            pub fn fallback<A>(mut self, handler: impl IntoHandler<S, A>) -> Self {
                self.routes().set_fallback(handler);
                self
            }

            /// Sets the handler of requests for a path that has handlers of other methods only, in
            /// place of 405. The server adds `Allow` to its response.
            pub fn method_not_allowed_fallback<A>(
                mut self,
                handler: impl IntoHandler<S, A>,
            ) -> Self {
                self.routes().set_not_allowed(handler);
                self
            }

            /// Adds the routes of a [`Router`] beneath a prefix, each within its middleware. Its
            /// handlers see the whole path; its route `/` is the prefix itself.
            ///
            /// # Panics
            /// As [`route`](Self::route).
            ///
            /// # Examples
            /// ```
            /// use pirn_http::{Router, Server};
            /// let api = Router::new().get("/users", || "all users");
            /// let client = Server::new().nest("/api", api).client();
            /// assert_eq!(client.get("/api/users").text(), "all users");
            /// ```
            #[track_caller]
            pub fn nest<T>(mut self, prefix: &str, router: Router<T>) -> Self {
                self.routes().add_all(prefix.trim_end_matches('/'), router);
                self
            }

            /// Adds the routes of a [`Router`], each within its middleware.
            ///
            /// # Panics
            /// As [`route`](Self::route).
            #[track_caller]
            pub fn merge<T>(mut self, router: Router<T>) -> Self {
                self.routes().add_all("", router);
                self
            }

            /// Puts [middleware](Middleware) around all handlers. The one added last is outermost.
            ///
            /// The middleware of a server is also around the answers 404 and 405, and may change
            /// the path by which the server finds the handler. The middleware of a router is around
            /// the router's handlers and fallbacks.
            pub fn with(mut self, middleware: impl Middleware) -> Self {
                self.routes().add_middleware(Arc::new(middleware));
                self
            }
        }
    };
    (@ $name:ident $method:ident $what:literal) => {
        #[doc = concat!("Adds a handler for ", $what, ".")]
        ///
        /// # Panics
        /// As [`route`](Self::route).
        #[track_caller]
        pub fn $name<A>(self, path: &str, handler: impl IntoHandler<S, A>) -> Self {
            self.route(Method::$method, path, handler)
        }
    };
}
pub(crate) use routing;

routing!(Router);

#[cfg(test)]
mod tests {
    use super::Router;
    use crate::{Client, Cors, Error, Handler, Request, Response, Server, Status};
    use http::Method;
    use http::header::HeaderValue;

    fn ask(client: &Client, method: Method, path: &str) -> (u16, String) {
        let answer = client.request(method, path, &[], b"");
        (answer.status.as_u16(), answer.text())
    }

    fn get(client: &Client, path: &str) -> (u16, String) {
        ask(client, Method::GET, path)
    }

    fn said(status: u16, text: &str) -> (u16, String) {
        (status, text.to_owned())
    }

    /// A middleware that adds its name to what is inside.
    fn around(name: &'static str) -> impl Fn(&mut Request, &Handler) -> Response {
        move |request: &mut Request, inner: &Handler| {
            let mut response = inner(request);
            response
                .headers
                .append("around", HeaderValue::from_static(name));
            response
        }
    }

    fn names(client: &Client, path: &str) -> String {
        let answer = client.get(path);
        let names = answer.headers.get_all("around").iter();
        Vec::from_iter(names.map(|name| name.to_str().unwrap())).join(" ")
    }

    #[test]
    fn head_is_served_by_get_before_what_serves_all_methods() {
        let length = |server: Server, method: Method| {
            let answer = server.client().request(method, "/", &[], b"");
            answer.headers["content-length"]
                .to_str()
                .unwrap()
                .to_owned()
        };
        let both = || Server::new().any("/", || "any").get("/", || "of get");
        assert_eq!(length(both(), Method::HEAD), "6");
        assert_eq!(length(both(), Method::GET), "6");
        assert_eq!(length(both(), Method::PUT), "3");
        assert_eq!(length(both().head("/", || "its"), Method::HEAD), "3");
    }

    #[test]
    fn each_method_has_its_handler() {
        let client = Server::new()
            .get("/", || "get")
            .post("/", || "post")
            .put("/", || "put")
            .patch("/", || "patch")
            .delete("/", || "delete")
            .options("/", || "options")
            .client();
        for name in ["get", "post", "put", "patch", "delete", "options"] {
            let method = Method::from_bytes(name.to_uppercase().as_bytes()).unwrap();
            assert_eq!(ask(&client, method, "/"), said(200, name));
        }
        let other = client.request(Method::TRACE, "/", &[], b"");
        assert_eq!(other.status, Status::METHOD_NOT_ALLOWED);
        let allowed = "GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD";
        assert_eq!(other.headers["allow"], allowed);
    }

    #[test]
    fn handlers_get_the_state_of_their_router() {
        fn both(state: &u8, request: &mut Request) -> String {
            format!("{state} {}", request.uri)
        }
        let inner = Router::with_state("inner").get("/state", |state: &&'static str| *state);
        let client = Server::with_state(7)
            .get("/", |state: &u8| state.to_string())
            .get("/both", both)
            .nest("/inner", inner)
            .client();
        assert_eq!(get(&client, "/"), said(200, "7"));
        assert_eq!(get(&client, "/both"), said(200, "7 /both"));
        assert_eq!(get(&client, "/inner/state"), said(200, "inner"));
    }

    #[test]
    fn nested_routers_have_the_whole_path_and_keep_their_middleware() {
        let param = |request: &mut Request| -> Result<String, Error> {
            let (user, note): (u8, u8) = (request.param("user")?, request.param("note")?);
            Ok(format!(
                "{user} {note} {}",
                request.route().unwrap_or_default()
            ))
        };
        let notes = Router::new().get("/{note}", param).get("/", || "notes");
        let notes = notes.with(around("notes"));
        let users = Router::new()
            .nest("/{user}/notes", notes)
            .get("/", || "users");
        let more = Router::new().get("/more", || "more").with(around("more"));
        let client = Server::new()
            .nest("/users/", users.with(around("users")))
            .merge(more)
            .with(around("all"))
            .client();
        let found = said(200, "7 8 /users/{user}/notes/{note}");
        assert_eq!(get(&client, "/users/7/notes/8"), found);
        assert_eq!(get(&client, "/users/7/notes"), said(200, "notes"));
        assert_eq!(get(&client, "/users"), said(200, "users"));
        assert_eq!(get(&client, "/more"), said(200, "more"));
        assert_eq!(get(&client, "/users/7").0, 404);
        assert_eq!(names(&client, "/users/7/notes/8"), "notes users all");
        assert_eq!(names(&client, "/users"), "users all");
        assert_eq!(names(&client, "/more"), "more all");
        assert_eq!(names(&client, "/nowhere"), "all");
    }

    #[test]
    fn the_fallback_of_the_longest_prefix_serves() {
        let api = Router::new()
            .get("/users", || "users")
            .fallback(|| (Status::NOT_FOUND, "no such part of the api"))
            .method_not_allowed_fallback(|| (Status::METHOD_NOT_ALLOWED, "not in the api"))
            .with(around("api"));
        let client = Server::new()
            .get("/", || "home")
            .nest("/api", api)
            .fallback(|request: &mut Request| {
                (Status::NOT_FOUND, format!("no {}", request.uri.path()))
            })
            .method_not_allowed_fallback(|| (Status::METHOD_NOT_ALLOWED, "not here"))
            .client();
        for path in ["/api", "/api/", "/api/x/y"] {
            assert_eq!(get(&client, path), said(404, "no such part of the api"));
            assert_eq!(names(&client, path), "api");
        }
        assert_eq!(get(&client, "/apis"), said(404, "no /apis"));
        assert_eq!(ask(&client, Method::PUT, "/"), said(405, "not here"));
        let refused = client.request(Method::PUT, "/api/users", &[], b"");
        assert_eq!(
            (refused.status.as_u16(), &*refused.text()),
            (405, "not in the api")
        );
        assert_eq!(refused.headers["allow"], "GET, HEAD");
    }

    #[test]
    fn middleware_of_a_nested_router_is_around_its_405() {
        let get_only = || Router::new().get("/users", || "users");
        let inner = Router::new().nest("/v1", get_only().with(around("inner")));
        let server = || {
            Server::new()
                .nest("/api", inner.with(around("api")))
                .nest("/cors", get_only().with(Cors::any_origin()))
        };
        let (outer, path) = (|| (Status::METHOD_NOT_ALLOWED, "not here"), "/api/v1/users");
        let client = server().method_not_allowed_fallback(outer).client();
        let refused = client.request(Method::PUT, path, &[], b"");
        assert_eq!(refused.status, Status::METHOD_NOT_ALLOWED);
        assert_eq!(refused.text(), "not here");
        assert_eq!(refused.headers.get_all("around").iter().count(), 2);
        let preflight = [
            ("origin", "https://app.example"),
            ("access-control-request-method", "GET"),
        ];
        let answer = client.request(Method::OPTIONS, "/cors/users", &preflight, b"");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
    }

    #[test]
    fn a_parameter_that_is_not_utf_8_is_a_bad_request() {
        let client = Server::new().get("/{name}", |request: &mut Request| {
            request.param::<String>("name")
        });
        let client = client.client();
        assert_eq!(get(&client, "/J%C3%B6rg"), said(200, "J\u{f6}rg"));
        let why = "the path parameter name is not UTF-8";
        assert_eq!(get(&client, "/%ff"), said(400, why));
    }

    #[test]
    #[should_panic(expected = "the route /a has a handler of this method already")]
    fn a_route_twice_is_refused() {
        let _ = Server::new()
            .get("/a", || "")
            .merge(Router::new().get("/a", || ""));
    }
}
