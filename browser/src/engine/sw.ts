/**
 * Service worker of one site (`site/<scope>/`): hands each request to the remote page and sends its answer.
 *
 * It keeps nothing in memory: the browser may stop it at any time, so it finds the remote page anew for every
 * request, and its settings are in the URL of the script. Every answer gets a content security policy; in opaque mode
 * that includes `sandbox`, so that documents of the sandbox have no origin and cannot reach the parent site.
 */
import { answerHeaders } from './headers.js';
import type { ForwardedAnswer, ForwardedRequest } from './protocol.js';
import { sentencePage } from './sentence.js';

// TypeScript's libraries for service workers and for pages conflict, so the types of this worker are declared here.
interface Client {
	readonly url: string;
	postMessage: ( message: unknown, transfer: Transferable[] ) => void;
}
interface WorkerEvent extends Event {
	readonly request: Request;
	waitUntil: ( work: Promise< unknown > ) => void;
	respondWith: ( response: Response | Promise< Response > ) => void;
}
declare const self: {
	readonly location: Location;
	readonly registration: ServiceWorkerRegistration;
	readonly clients: { claim: () => Promise< void >; matchAll: ( options: { type: 'window'; includeUncontrolled: boolean } ) => Promise< Client[] > };
	skipWaiting: () => Promise< void >;
	addEventListener: ( type: 'install' | 'activate' | 'fetch', listener: ( event: WorkerEvent ) => void ) => void;
};

const settings = new URL( self.location.href ).searchParams;
const opaque = 'separate-host' !== settings.get( 'isolation' );
const coep = '1' === settings.get( 'coep' );
const base = new URL( './', self.location.href ).href;
/** The remote page confirms a request at once, so silence for this long means that it is gone or frozen. */
const confirmedWithin = 20_000;

self.addEventListener( 'install', ( event ) => event.waitUntil( self.skipWaiting() ) );
self.addEventListener( 'activate', ( event ) => event.waitUntil( self.clients.claim() ) );
self.addEventListener( 'fetch', ( event ) => {
	const site = new URL( self.registration.scope );
	const url = new URL( event.request.url );
	if ( url.origin === site.origin && url.pathname.startsWith( site.pathname ) ) {
		event.respondWith( respond( event.request, site ) );
	} else if ( ! opaque && url.origin !== site.origin ) {
		// Sends no request to other hosts. The content security policy of the documents forbids it too.
		event.respondWith( Response.error() );
	}
} );

async function respond( request: Request, site: URL ): Promise< Response > {
	const navigation = 'navigate' === request.mode;
	try {
		const scope = site.pathname.slice( new URL( base ).pathname.length ).split( '/' )[ 1 ] ?? '';
		if ( new URL( request.url ).pathname === `${ site.pathname }wp-codebox-blocked` ) {
			return sentence( 403, 'A link to another site', `The sandbox does not open other sites: ${ new URL( request.url ).searchParams.get( 'url' ) ?? '' }`, site );
		}
		const page = await owner( scope );
		if ( undefined === page ) {
			return sentence( 503, 'The sandbox is closed', 'The page that ran this sandbox is closed. Open the sandbox again from the site.', site );
		}
		const answer = await ask( page, request, scope, navigation );
		if ( null === answer ) {
			return sentence( 504, 'The sandbox does not answer', 'The page that runs this sandbox does not answer. Reload that page.', site );
		}
		const empty = [ 204, 205, 304 ].includes( answer.status );
		return new Response( empty ? null : ( answer.body as BodyInit | null ), { status: answer.status, headers: answerHeaders( answer.headers, { opaque, coep, site } ) } );
	} catch ( thrown ) {
		return sentence( 500, 'The sandbox has failed', `The request could not be answered: ${ thrown instanceof Error ? thrown.message : thrown }`, site );
	}
}

/** The remote page of a scope, found by its URL. */
async function owner( scope: string ): Promise< Client | undefined > {
	const all = await self.clients.matchAll( { type: 'window', includeUncontrolled: true } );
	return all.find( ( one ) => {
		const url = new URL( one.url );
		return url.href.startsWith( `${ base }remote.html?` ) && url.searchParams.get( 'scope' ) === scope;
	} );
}

async function ask( page: Client, request: Request, scope: string, navigation: boolean ): Promise< Extract< ForwardedAnswer, { type: 'response' } > | null > {
	const body = [ 'GET', 'HEAD' ].includes( request.method ) ? null : await request.arrayBuffer();
	const headers: Record< string, string > = {};
	request.headers.forEach( ( value, name ) => {
		headers[ name ] = value;
	} );
	if ( request.referrer ) {
		headers.referer = request.referrer;
	}
	const forwarded: ForwardedRequest = { type: 'wp-codebox-browser-request', scope, url: request.url, method: request.method, headers, body, navigation };
	const channel = new MessageChannel();
	return new Promise( ( resolve ) => {
		const timer = setTimeout( () => resolve( null ), confirmedWithin );
		channel.port1.onmessage = ( event ) => {
			const answer = event.data as ForwardedAnswer;
			clearTimeout( timer );
			if ( 'response' === answer.type ) {
				channel.port1.close();
				resolve( answer );
			}
		};
		page.postMessage( forwarded, [ channel.port2, ...( null === body ? [] : [ body ] ) ] );
	} );
}

function sentence( status: number, title: string, text: string, site: URL ): Response {
	return new Response( sentencePage( title, text, site.href ), { status, headers: answerHeaders( [ [ 'content-type', 'text/html; charset=utf-8' ], [ 'cache-control', 'no-store' ] ], { opaque, coep, site } ) } );
}
