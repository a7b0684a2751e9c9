//! The controller's own HTTP client. Blocking: callers put it on a thread of its own. Types of ureq stay here.

use std::io::Read;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

use super::{Answer, MOST_REDIRECTS, Request};
use crate::error::{Error, Result};

/// Certificates and key in PEM, in place of the paths of a request.
#[derive(Debug, Clone, Default)]
pub struct Pem {
    pub authorities: Option<Vec<u8>>,
    /// The client's chain and its key, which may be in one.
    pub client: Option<Vec<u8>>,
}

/// Sends a request and follows redirects. An answer with any status is an answer.
pub fn send(request: &Request, pem: &Pem) -> Result<Answer> {
    let refuse = |what: &str| Err(fail(request, format!("{what}: this is not possible from the controller")));
    if request.unix_socket.is_some() {
        return refuse("`unix_socket`");
    }
    if !request.ciphers.is_empty() {
        return refuse("`ciphers`");
    }
    let agent = agent(request, pem)?;
    let mut request = request.clone();
    for _ in 0..=MOST_REDIRECTS {
        let mut answer = send_once(&agent, &request, request.credentials.as_ref().is_some_and(|login| login.at_once))?;
        if answer.status == 401 && request.credentials.as_ref().is_some_and(|login| !login.at_once) {
            let asked = answer.header("www-authenticate").unwrap_or_default();
            if asked.to_ascii_lowercase().contains("basic") {
                answer = send_once(&agent, &request, true)?;
            }
        }
        match request.redirected(&answer) {
            Some(next) => request = next,
            None => return Ok(answer),
        }
    }
    Err(fail(&request, format!("more than {MOST_REDIRECTS} redirects")))
}

fn fail(request: &Request, why: impl std::fmt::Display) -> Error {
    Error::system(format!("{}: {why}", request.shown_url()))
}

fn agent(request: &Request, pem: &Pem) -> Result<Agent> {
    let mut tls = TlsConfig::builder().disable_verification(!request.verify);
    tls = tls.root_certs(match &pem.authorities {
        Some(authorities) => RootCerts::new_with_certs(&certificates(authorities).map_err(|why| fail(request, why))?),
        None => trusted(),
    });
    if let Some(client) = &pem.client {
        let chain = certificates(client).map_err(|why| fail(request, why))?;
        let key = PrivateKey::from_pem(client).map_err(|error| fail(request, format!("the client's key: {error}")))?;
        tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    let proxy = if request.proxy { Proxy::try_from_env() } else { None };
    let timeout = Some(request.timeout);
    Ok(Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .allow_non_standard_methods(true)
        .timeout_resolve(timeout)
        .timeout_connect(timeout)
        .timeout_recv_response(timeout)
        .timeout_per_read(timeout)
        .tls_config(tls.build())
        .proxy(proxy)
        .build()
        .new_agent())
}

/// What the controller trusts, read once.
fn trusted() -> RootCerts {
    static TRUSTED: LazyLock<Arc<Vec<Certificate<'static>>>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs();
        Arc::new(found.certs.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned()).collect())
    });
    RootCerts::Specific(Arc::clone(&TRUSTED))
}

fn certificates(pem: &[u8]) -> std::result::Result<Vec<Certificate<'static>>, String> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| error.to_string())? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err("there is no certificate in PEM in the file".to_owned()) } else { Ok(found) }
}

fn send_once(agent: &Agent, request: &Request, with_password: bool) -> Result<Answer> {
    let mut builder = ureq::http::Request::builder().method(request.method.as_str()).uri(request.url.as_str());
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    if let Some(login) = request.credentials.as_ref().filter(|_| with_password) {
        let word = base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", login.user, login.password));
        builder = builder.header("Authorization", format!("Basic {word}"));
    }
    let response = match &request.body {
        Some(body) => {
            let message = builder.body(body.as_slice()).map_err(|error| fail(request, error))?;
            agent.run(message)
        }
        None => agent.run(builder.body(()).map_err(|error| fail(request, error))?),
    };
    let response = response.map_err(|error| fail(request, error))?;
    let (head, body) = response.into_parts();
    let mut answer = Answer {
        status: head.status.as_u16(),
        reason: String::new(),
        url: request.url.clone(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    for (name, value) in &head.headers {
        answer.headers.push((name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    }
    body.into_reader().read_to_end(&mut answer.body).map_err(|error| fail(request, error))?;
    Ok(answer)
}
