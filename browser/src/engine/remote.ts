/**
 * The remote page: the frame around a sandbox. It registers the service worker, starts the worker and passes
 * requests from one to the other.
 *
 * The embedding page must be trusted: everything that it sends becomes code of the sandbox, and in full mode
 * documents of the sandbox run on this origin without a CSP sandbox. Therefore these pages may embed this one:
 * - `opaque`: only a page of this very origin, and each document is sandboxed;
 * - `separate-host`: only when the file `separate-host.json` beside this page names this origin as the sandbox
 *   host and lists the origin of the embedding page. On the host of the embedding site the same file names another
 *   origin than that host, so no page can make that host serve unsandboxed documents.
 */
import { EngineError, type EngineFailure, type Isolation } from './api.js';
import { toFailure } from './errors.js';
import { frameDocument, type Ask } from './frames.js';
import type { FrameLoad } from './opaque-frames.js';
import { validScope, type ForwardedAnswer, type ForwardedRequest, type Hello } from './protocol.js';
import { Rpc } from './rpc.js';

const parameters = new URLSearchParams( location.search );
const scope = parameters.get( 'scope' ) ?? '';
const isolation: Isolation = 'separate-host' === parameters.get( 'isolation' ) ? 'separate-host' : 'opaque';
const base = new URL( './', location.href );
const siteUrl = new URL( `site/${ scope }`, base ).href;
const lockPrefix = 'wp-codebox-browser ';

let worker: Worker | undefined;
let frame: HTMLIFrameElement | undefined;
let registration: ServiceWorkerRegistration | undefined;
let control: Rpc | undefined;
let release: () => void = () => {};

function refused( message: string, hint?: string ): EngineError {
	return new EngineError( 'wp_codebox_browser_remote_refused', message, hint );
}

/** Throws unless a page of this origin may embed this page. */
async function checkEmbedder( origin: string ): Promise< void > {
	if ( self.origin !== location.origin || ! validScope( scope ) ) {
		throw refused( 'The remote page runs without an origin of its own, or without a valid scope.' );
	}
	if ( 'opaque' === isolation ) {
		if ( origin !== location.origin ) {
			throw refused( `A page of ${ origin } may not run a sandbox on ${ location.origin }.` );
		}
		return;
	}
	const hint = 'Let the site owner configure the host of browser sandboxes (WP_CODEBOX_BROWSER_HOST), or use the default mode.';
	if ( 'null' === origin || new URL( origin ).hostname === location.hostname ) {
		throw refused( `The mode with REST and block editor needs a separate host, but the page that opened it is on ${ location.hostname } too.`, hint );
	}
	const response = await fetch( new URL( 'separate-host.json', base ), { credentials: 'omit', cache: 'no-store' } ).catch( () => null );
	const allowed = ( response?.ok ? await response.json().catch( () => null ) : null ) as { origin?: unknown; embedders?: unknown } | null;
	if ( allowed?.origin !== location.origin || ! Array.isArray( allowed.embedders ) || ! allowed.embedders.includes( origin ) ) {
		throw refused( `${ location.origin } is not configured as the sandbox host of ${ origin }.`, hint );
	}
}

async function open( { coep }: { coep: boolean } ): Promise< { siteUrl: string } > {
	if ( ! ( 'serviceWorker' in navigator ) || undefined === navigator.serviceWorker ) {
		throw new EngineError( 'wp_codebox_browser_no_service_worker', 'This browser offers no service worker in the frame of the sandbox.', 'Open the site by https, outside of a private window, and allow site data.' );
	}
	await takeScope();
	const script = new URL( 'sw.js', base );
	script.searchParams.set( 'isolation', isolation );
	if ( coep ) {
		script.searchParams.set( 'coep', '1' );
	}
	try {
		registration = await navigator.serviceWorker.register( script, { scope: `${ siteUrl }/`, type: 'classic', updateViaCache: 'none' } );
		await active( registration );
	} catch ( thrown ) {
		throw noServiceWorker( thrown );
	}
	return { siteUrl };
}

/** The error when the browser blocks storage for this host or for third-party frames: it refuses the lock or the service worker. */
function noServiceWorker( thrown: unknown ): EngineError {
	const hint = 'separate-host' === isolation ? `Allow ${ location.hostname } to keep site data, also inside of pages of other sites, and check that it serves sw.js.` : 'Allow site data for this site, and check that sw.js is served.';
	return new EngineError( 'wp_codebox_browser_no_service_worker', `The service worker could not be started (${ ( thrown instanceof Error ? thrown.message : String( thrown ) ).replace( /\.$/, '' ) }).`, hint );
}

/** Holds the scope as long as this page lives, and removes service workers whose page is gone. */
async function takeScope(): Promise< void > {
	if ( undefined === navigator.locks ) {
		return;
	}
	const name = lockPrefix + siteUrl;
	const patience = new AbortController();
	// During a reload, the old document still holds the lock for a moment.
	const timer = setTimeout( () => patience.abort(), 5000 );
	await new Promise< void >( ( resolve, reject ) => {
		navigator.locks.request( name, { signal: patience.signal }, () => {
			resolve();
			return new Promise< void >( ( done ) => {
				release = done;
			} );
		} ).catch( ( thrown ) => reject( patience.signal.aborted ? new EngineError( 'wp_codebox_browser_boot_failed', 'This session is open in another window already.', 'Close the other window, or open a new sandbox.' ) : noServiceWorker( thrown ) ) );
	} ).finally( () => clearTimeout( timer ) );
	// Firefox gives a third-party frame no list of locks. There, a left-over service worker stays until its page is opened again.
	const locks = await navigator.locks.query().catch( () => null );
	if ( null === locks ) {
		return;
	}
	const held = new Set( locks.held?.map( ( lock ) => lock.name ) );
	for ( const one of await navigator.serviceWorker.getRegistrations() ) {
		if ( one.scope.startsWith( `${ base.href }site/` ) && ! held.has( lockPrefix + one.scope.replace( /\/$/, '' ) ) ) {
			await one.unregister();
		}
	}
}

function active( one: ServiceWorkerRegistration ): Promise< void > {
	const waiting = one.installing ?? one.waiting;
	if ( null === waiting ) {
		return Promise.resolve();
	}
	return new Promise( ( resolve, reject ) => {
		const look = () => {
			if ( 'activated' === waiting.state ) {
				resolve();
			} else if ( 'redundant' === waiting.state ) {
				reject( new Error( 'it was replaced while it started' ) );
			}
		};
		waiting.addEventListener( 'statechange', look );
		look();
	} );
}

/** Shows a path of the site in the frame; resolves when its document is loaded. */
function goTo( path: string ): Promise< void > {
	const url = new URL( siteUrl + ( path.startsWith( '/' ) ? path : `/${ path }` ) );
	if ( ! `${ url.href }/`.startsWith( `${ siteUrl }/` ) ) {
		throw new EngineError( 'wp_codebox_browser_request_failed', `${ path } is not a path of the site.` );
	}
	const shown = frame ?? createFrame();
	return new Promise( ( resolve ) => {
		shown.addEventListener( 'load', () => resolve(), { once: true } );
		shown.src = url.href;
	} );
}

function createFrame(): HTMLIFrameElement {
	document.getElementById( 'sentence' )?.remove();
	// The frame may show the sandbox's site only: a link in it must not open a page of the embedding site.
	const policy = document.createElement( 'meta' );
	policy.httpEquiv = 'Content-Security-Policy';
	// Firefox checks an answer of a service worker by the URL of the worker's script. Allowing it is safe: it is no page.
	policy.content = `frame-src ${ siteUrl }/ ${ new URL( 'sw.js', base ).href }`;
	document.head.append( policy );
	frame = document.createElement( 'iframe' );
	frame.title = 'WordPress';
	document.body.append( frame );
	const shown = frame;
	document.addEventListener( 'securitypolicyviolation', ( event ) => {
		if ( 'frame-src' === event.effectiveDirective ) {
			shown.src = `${ siteUrl }/wp-codebox-blocked?url=${ encodeURIComponent( event.blockedURI ) }`;
		}
	} );
	return frame;
}

function receiveRequest( event: MessageEvent ): void {
	const request = event.data as ForwardedRequest;
	const port = event.ports[ 0 ];
	if ( 'wp-codebox-browser-request' !== request?.type || request.scope !== scope || undefined === port || undefined === worker ) {
		return;
	}
	port.postMessage( { type: 'received' } satisfies ForwardedAnswer );
	if ( request.navigation ) {
		const path = request.url.slice( siteUrl.length ) || '/';
		control?.emit( 'navigation', path );
	}
	worker.postMessage( { type: 'request', request }, [ port ] );
}

/** Answers the request for the document of a frame inside the shown document. Messages of other windows are ignored. */
function receiveFrame( event: MessageEvent ): void {
	const message = event.data as FrameLoad;
	const port = event.ports[ 0 ];
	if ( 'wp-codebox-frame-load' !== message?.type || undefined === frame || event.source !== frame.contentWindow || 'null' !== event.origin || undefined === port ) {
		return;
	}
	const ask: Ask = ( request ) => new Promise( ( resolve ) => {
		const channel = new MessageChannel();
		channel.port1.onmessage = ( { data } ) => {
			channel.port1.close();
			resolve( data );
		};
		worker?.postMessage( { type: 'request', request }, [ channel.port2 ] );
	} );
	void frameDocument( message.request, { scope, url: siteUrl }, ask ).then( ( text ) => port.postMessage( text ) );
}

async function destroy(): Promise< void > {
	worker?.terminate();
	worker = undefined;
	frame?.remove();
	frame = undefined;
	await registration?.unregister();
	release();
}

function start( event: MessageEvent ): void {
	const hello = event.data as Hello;
	const [ controlPort, workerPort ] = event.ports;
	if ( event.source !== window.parent || window.parent === window || 'wp-codebox-browser-hello' !== hello?.type || hello.channel !== location.hash.slice( 1 ) || '' === hello.channel || undefined === controlPort || undefined === workerPort ) {
		return;
	}
	window.removeEventListener( 'message', start );
	const embedder = checkEmbedder( event.origin );
	embedder.catch( () => {} );
	control = new Rpc( controlPort, {
		open: async ( options: { coep: boolean } ) => {
			await embedder;
			const answer = await open( options );
			worker = new Worker( new URL( 'worker.js', base ), { type: 'module', name: `wp-codebox ${ scope }` } );
			worker.addEventListener( 'error', ( problem ) => {
				const failure: EngineFailure = toFailure( new Error( problem.message || 'The worker of the sandbox could not be started.' ), 'wp_codebox_browser_boot_failed' );
				control?.emit( 'failed', failure );
			} );
			worker.postMessage( { type: 'port' }, [ workerPort ] );
			navigator.serviceWorker.addEventListener( 'message', receiveRequest );
			navigator.serviceWorker.startMessages();
			if ( 'opaque' === isolation ) {
				window.addEventListener( 'message', receiveFrame );
			}
			return answer;
		},
		goTo: ( path: string ) => goTo( path ),
		destroy,
	}, 'wp_codebox_browser_boot_failed' );
}

window.addEventListener( 'message', start );
