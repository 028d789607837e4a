//! From the arguments to an open door, the address of each page, and the end of the process.

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::atomic::Ordering,
    time::Duration,
};

use anyhow::Context as _;
use axum::{Router, middleware::from_fn_with_state, response::Redirect, routing::get};
use futures::StreamExt as _;
use launcher::follow::Follower;
use service::security::tokens::Right;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Arguments,
    app::App,
    assets, compare, explore,
    failure::Failure,
    learn, matches, overview, play, records, report,
    run::Run,
    security::{
        self,
        door::Door,
        gate::{Gate, admit},
        login, token, wire,
    },
    settings,
};

/// Port that is tried first if none is given.
const PORT: u16 = 7070;
/// Time that open connections have to end.
const DRAIN: Duration = Duration::from_millis(500);

/// Runs `minuet studio` until a signal ends it.
///
/// # Errors
/// The folder is not that of a run, or the port is taken.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    // Before any thread is started, because on Linux a thread inherits its creator's niceness.
    if let Some(nice) = arguments.nice {
        rustix::process::nice(nice).context("cannot set the process's niceness")?;
    }
    let follower = match (&arguments.follow, &arguments.run) {
        (Some(file), Some(folder)) => Some(Follower::open(
            folder,
            file,
            &arguments.overrides,
            arguments.prometheus.clone(),
        )?),
        _ => None,
    };
    let run = arguments.run.as_deref().map(Run::open).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    if let Some(file) = &arguments.report {
        let run = run.context("a report needs a run; name its folder with --run")?;
        return runtime.block_on(write_report(run, file));
    }
    let ended = runtime.block_on(async {
        let ending = CancellationToken::new();
        service::role::stop_on_signals(ending.clone())?;
        if arguments.supervised {
            service::role::stop_when_stdin_closes(ending.clone())?;
        }
        let listener = listen(arguments.listen, arguments.port).await?;
        let address = listener.local_addr()?;
        let app = App::new(run, ending.clone());
        let mut security = app.run.config.security.clone();
        let made = match arguments.make_token {
            true => Some(token::made(&app.run.folder)?),
            false => None,
        };
        if let Some(made) = &made {
            security.tokens.clone_from(&made.file);
        }
        let door = Door::at(address, &security, &arguments.name)?;
        let url = url(&door, address, arguments.name.first());
        let mut output = io::stdout().lock();
        writeln!(output, "{url}")
            .and_then(|()| match &made {
                Some(made) => writeln!(output, "sign in with the token {}", made.token),
                None => Ok(()),
            })
            .and_then(|()| output.flush())
            .context("cannot print the address")?;
        drop(output);
        if arguments.open
            && let Err(error) = open::that_detached(&url)
        {
            eprintln!("minuet: cannot open a browser ({error}); open {url}");
        }
        let serving = serve(listener, app, door);
        match follower {
            None => serving.await,
            // The pages stay when the record cannot be kept any more: they say how old the figures are.
            Some(follower) => {
                let following = async {
                    if let Err(error) = follower.run(ending).await {
                        tracing::error!(
                            "the run is not followed any more: {}",
                            service::chain(error.as_ref())
                        );
                    }
                };
                tokio::join!(serving, following).0
            }
        }
    });
    runtime.shutdown_timeout(DRAIN);
    ended
}

async fn write_report(run: Run, file: &Path) -> anyhow::Result<()> {
    let app = App::new(run, CancellationToken::new());
    let report = report::report(&app).await?;
    std::fs::write(file, report.into_string()).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

/// Address for a browser: the first name, or the address that is listened on.
fn url(door: &Door, address: SocketAddr, name: Option<&String>) -> String {
    let scheme = door.scheme();
    match name {
        Some(name) => format!("{scheme}://{name}:{}/", address.port()),
        None if address.ip().is_unspecified() => {
            format!("{scheme}://{}:{}/", Ipv4Addr::LOCALHOST, address.port())
        }
        None => format!("{scheme}://{address}/"),
    }
}

async fn listen(at: IpAddr, port: Option<u16>) -> anyhow::Result<TcpListener> {
    let on = |port: u16| TcpListener::bind(SocketAddr::from((at, port)));
    let cannot = |port: u16| format!("cannot serve on {}", SocketAddr::from((at, port)));
    match port {
        Some(port) => on(port).await.with_context(|| cannot(port)),
        None => match on(PORT).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                on(0).await.context("cannot find a free port")
            }
            first => first.with_context(|| cannot(PORT)),
        },
    }
}

/// Serves the pages behind a door until [`App::ending`] is cancelled. Open streams end then; a connection that stays open after that is cut.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, app: App, door: Door) -> anyhow::Result<()> {
    let ending = app.ending.clone();
    if door.gate.is_some() {
        app.has_sessions.store(true, Ordering::Relaxed);
    }
    let site = security::guard(routes(app, door.gate.as_ref()), door.hosts.clone());
    let mut connections = door.connections(listener);
    // Connections that are open at the end of this function are cut.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            () = ending.cancelled() => break,
            Some(_) = open.join_next() => {}
            connection = connections.next() => {
                let connection = connection.context("cannot serve any more")?;
                if let Ok(connection) = connection {
                    open.spawn(wire::serve(connection, site.clone(), ending.clone()));
                }
            }
        }
    }
    drop(connections);
    drop(tokio::time::timeout(DRAIN, async { while open.join_next().await.is_some() {} }).await);
    Ok(())
}

/// All routes. With a `gate` a token is needed: one that may `sample` for pages, one that may `evaluate` to play.
fn routes(app: App, gate: Option<&Gate>) -> Router {
    let needs = |right: Right, routes: Router<App>| match gate {
        None => routes,
        Some(gate) => routes.route_layer(from_fn_with_state((gate.clone(), right), admit)),
    };
    let of_run = match app.has_run {
        true => Router::new()
            .merge(overview::routes())
            .merge(records::routes())
            .merge(learn::routes())
            .merge(matches::routes())
            .merge(compare::routes())
            .merge(settings::routes())
            .merge(report::routes()),
        false => Router::new().route("/", get(async || Redirect::to("/play"))),
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/assets/{digest}/{name}", get(assets::asset))
        .merge(needs(Right::Sample, of_run))
        .merge(needs(Right::Evaluate, play::routes().merge(explore::routes())))
        .fallback(async || Failure::Missing("There is no page at this address.".into()))
        .with_state(app)
        .merge(gate.map_or_else(Router::new, |gate| login::routes(gate.clone())))
}
