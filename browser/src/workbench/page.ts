/**
 * What PHP prints for this page, and the requests to the site.
 */
import type { Blueprint } from '../engine/api';
import { PageError } from './failure';
import { i18n } from './i18n';

/** A REST route of an ability, and the nonce for it. */
export interface Route {
	readonly url: string;
	readonly nonce: string;
}

/** `window.wpCodeboxBrowserPage`. */
export interface PageSettings {
	readonly client_module_url: string;
	readonly remote_url: string;
	readonly cors_proxy_url?: string;
	readonly scope: string;
	readonly session: Readonly< Record< string, unknown > >;
	readonly blueprint_ref: string | { readonly ref: string };
	readonly hydrate: Route;
	readonly roots: ReadonlyArray< { readonly target: string; readonly path: string; readonly label: string } >;
	readonly isolation: 'opaque' | 'separate-host';
	readonly can_keep: boolean;
	readonly keep?: Route;
	/** Address of the review page; `%s` is the id of the bundle. */
	readonly review_url?: string;
	readonly docs_url?: string;
}

/** Returns the settings of the page, checked as far as the page needs them. */
export function pageSettings( given: unknown ): PageSettings {
	const settings = given as PageSettings | undefined;
	const ok =
		settings &&
		'string' === typeof settings.client_module_url &&
		'string' === typeof settings.remote_url &&
		'string' === typeof settings.hydrate?.url &&
		Array.isArray( settings.roots ) &&
		settings.roots.length > 0;
	if ( ! ok ) {
		throw new PageError( 'wp_codebox_browser_page_invalid', i18n.__( 'This page has no browser session.', 'codebox' ), i18n.__( 'Open one from the page of a plugin, a theme or a bundle.', 'codebox' ) );
	}
	return settings;
}

/** Returns the id of the session. */
export function sessionId( settings: PageSettings ): string {
	const inner = settings.session.session as { id?: unknown; session_id?: unknown } | undefined;
	return String( settings.session.session_id ?? inner?.id ?? inner?.session_id ?? settings.scope );
}

/** Gets the blueprint of the session from the site. */
export async function hydrate( settings: PageSettings, signal?: AbortSignal ): Promise< Blueprint > {
	const ref = 'string' === typeof settings.blueprint_ref ? settings.blueprint_ref : settings.blueprint_ref.ref;
	const answer = await run( settings.hydrate, { ref }, { signal } );
	if ( null === answer.blueprint || 'object' !== typeof answer.blueprint ) {
		throw new PageError( 'wp_codebox_browser_page_invalid', i18n.__( 'The site returned no blueprint for this session.', 'codebox' ), i18n.__( 'Open a new browser session.', 'codebox' ) );
	}
	return answer.blueprint as Blueprint;
}

interface RunOptions {
	readonly signal?: AbortSignal | undefined;
	/** Called with the fraction of the request that is sent, from 0 to 1. */
	readonly onSent?: ( fraction: number ) => void;
}

/** Runs an ability over REST. Errors have the code and the message of the site. */
export async function run( route: Route, input: Readonly< Record< string, unknown > >, options: RunOptions = {} ): Promise< Record< string, unknown > > {
	let answer = await send( 'POST', route.url, route.nonce, JSON.stringify( { input } ), options );
	// WordPress wants GET for abilities that only read.
	if ( 405 === answer.status ) {
		const url = new URL( route.url, location.href );
		Object.entries( input ).forEach( ( [ name, value ] ) => url.searchParams.set( `input[${ name }]`, String( value ) ) );
		answer = await send( 'GET', url.href, route.nonce, null, options );
	}
	let body: Record< string, unknown >;
	try {
		body = JSON.parse( answer.text ) as Record< string, unknown >;
	} catch {
		throw new PageError(
			'wp_codebox_browser_site_unreadable',
			/* translators: %s: an HTTP status such as 502. */
			i18n.sprintf( i18n.__( 'The site returned an unreadable response (HTTP status %s).', 'codebox' ), answer.status ),
			i18n.__( 'Try again. When that does not help, look at the error log of the site.', 'codebox' )
		);
	}
	if ( answer.status < 200 || answer.status > 299 || false === body.success ) {
		const error = ( body.error ?? body ) as { code?: unknown; message?: unknown; data?: { hints?: unknown; hint?: unknown } };
		const hints = Array.isArray( error.data?.hints ) ? error.data.hints.filter( ( hint ): hint is string => 'string' === typeof hint ).join( ' ' ) : '';
		throw new PageError( String( error.code ?? 'wp_codebox_browser_site_refused' ), String( error.message ?? i18n.__( 'The site refused the request.', 'codebox' ) ), hints || undefined );
	}
	return body;
}

/** Sends a request. XMLHttpRequest instead of fetch(), because only it reports how much is sent. */
function send( method: 'GET' | 'POST', url: string, nonce: string, body: string | null, { signal, onSent }: RunOptions ): Promise< { status: number; text: string } > {
	return new Promise( ( done, fail ) => {
		const request = new XMLHttpRequest();
		request.open( method, url );
		request.setRequestHeader( 'X-WP-Nonce', nonce );
		if ( null !== body ) {
			request.setRequestHeader( 'Content-Type', 'application/json' );
		}
		request.upload.addEventListener( 'progress', ( event ) => event.lengthComputable && onSent?.( event.loaded / event.total ) );
		request.addEventListener( 'load', () => done( { status: request.status, text: request.responseText } ) );
		request.addEventListener( 'error', () =>
			fail( new PageError( 'wp_codebox_browser_site_unreachable', i18n.__( 'The site could not be reached.', 'codebox' ), i18n.__( 'Check the connection, then try again. Nothing is lost.', 'codebox' ) ) )
		);
		request.addEventListener( 'abort', () => fail( new PageError( 'wp_codebox_browser_closed', i18n.__( 'The request was cancelled.', 'codebox' ) ) ) );
		signal?.addEventListener( 'abort', () => request.abort() );
		request.send( body );
	} );
}
