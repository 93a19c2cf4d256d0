/**
 * Opens the remote page in the frame and agrees on two private ports with it.
 *
 * Checks of this side: isolation mode against the hosts, source window, origin and channel id of the answer.
 * The remote page checks the same from its side, and refuses pages that may not embed it.
 */
import { EngineError, type EngineFailure, type Isolation } from './api.js';
import { fromFailure } from './errors.js';
import type { Hello } from './protocol.js';
import { Rpc } from './rpc.js';

/** The two ends that a page holds, and the address of the site. */
export interface RemotePorts {
	control: Rpc;
	worker: Rpc;
	siteUrl: string;
	/** Sets the function that answers requests of the worker for files that the archive does not hold. */
	serveStatics: ( answer: ( path: string ) => Promise< unknown > ) => void;
	close: () => void;
}

/** Refuses combinations of hosts and isolation in which the sandbox could reach this page. */
export function checkIsolation( page: URL, remote: URL, isolation: Isolation ): void {
	if ( 'opaque' === isolation && remote.origin !== page.origin ) {
		throw new EngineError( 'wp_codebox_browser_remote_refused', `The remote page is on ${ remote.host }, but this session runs on the site itself.`, 'Configure the other host as the host of browser sandboxes (WP_CODEBOX_BROWSER_HOST in wp-config.php).' );
	}
	// Cookies ignore ports, so another port of the same host is no separation.
	if ( 'separate-host' === isolation && remote.hostname === page.hostname ) {
		throw new EngineError( 'wp_codebox_browser_remote_refused', `The mode with REST and block editor needs a separate host, but the remote page is on ${ remote.hostname }, as this page is.`, 'Configure another host for browser sandboxes, or use the default mode.' );
	}
}

/** Opens the remote page; resolves when it has its service worker and its worker. */
export async function openRemote( iframe: HTMLIFrameElement, remoteUrl: string, scope: string, isolation: Isolation ): Promise< RemotePorts > {
	const url = new URL( remoteUrl, location.href );
	checkIsolation( new URL( location.href ), url, isolation );
	const coep = await remoteHeaders( url );
	if ( globalThis.crossOriginIsolated && ! coep ) {
		// A cross-origin isolated page can embed a page without COEP only in a credentialless frame.
		( iframe as HTMLIFrameElement & { credentialless?: boolean } ).credentialless = true;
	}
	const channel = crypto.randomUUID();
	url.searchParams.set( 'scope', scope );
	url.searchParams.set( 'isolation', isolation );
	url.hash = channel;
	await new Promise< void >( ( resolve ) => {
		iframe.addEventListener( 'load', () => resolve(), { once: true } );
		iframe.src = url.href;
	} );
	const frame = iframe.contentWindow;
	if ( null === frame ) {
		throw new EngineError( 'wp_codebox_browser_closed', 'The frame of the sandbox was removed while it started.', 'Open the sandbox again.' );
	}
	const control = new MessageChannel();
	const worker = new MessageChannel();
	let answerStatic: ( path: string ) => Promise< unknown > = async () => null;
	const controlRpc = new Rpc( control.port1, {}, 'wp_codebox_browser_boot_failed' );
	const workerRpc: Rpc = new Rpc( worker.port1, { fetchStatic: ( path: string ) => answerStatic( path ) }, 'wp_codebox_browser_asset_missing' );
	controlRpc.on( 'failed', ( data ) => workerRpc.close( fromFailure( data as EngineFailure ) ) );
	// With the target origin, the browser drops the message if the frame shows another site by now.
	frame.postMessage( { type: 'wp-codebox-browser-hello', channel } satisfies Hello, url.origin, [ control.port2, worker.port2 ] );
	const { siteUrl } = await controlRpc.call< { siteUrl: string } >( 'open', [ { coep: true === globalThis.crossOriginIsolated } ] );
	return {
		control: controlRpc,
		worker: workerRpc,
		siteUrl,
		serveStatics: ( answer ) => {
			answerStatic = answer;
		},
		close: () => {
			controlRpc.close();
			workerRpc.close();
			// Removing the attribute `src` would leave the page loaded in the frame.
			iframe.src = 'about:blank';
		},
	};
}

/** Checks that a remote page on this origin exists; returns whether it sends COEP. On another origin both are assumed. */
async function remoteHeaders( url: URL ): Promise< boolean > {
	if ( url.origin !== location.origin ) {
		return true;
	}
	const response = await fetch( url, { credentials: 'same-origin', redirect: 'error' } ).catch( () => null );
	if ( null === response || ! response.ok || ! ( response.headers.get( 'content-type' ) ?? '' ).startsWith( 'text/html' ) ) {
		throw new EngineError( 'wp_codebox_browser_asset_missing', `The site does not serve remote.html (status ${ response?.status ?? 'none' }).`, 'Install the plugin again: its folder assets/browser is incomplete.' );
	}
	return null !== response.headers.get( 'cross-origin-embedder-policy' );
}
