/**
 * Fetches documents for frames inside opaque documents (documents without an origin). The remote page calls this when
 * the script of `opaque-frames.ts` asks; only the document in that page's own frame may ask, for addresses of its site.
 */
import type { FrameRequest } from './opaque-frames.js';
import { withShim } from './opaque-shim.js';
import type { ForwardedAnswer, ForwardedRequest } from './protocol.js';
import { sentencePage } from './sentence.js';

type Answer = Extract< ForwardedAnswer, { type: 'response' } >;

const mostRedirects = 10;

/** Hands one request to the worker. */
export type Ask = ( request: ForwardedRequest ) => Promise< Answer >;

/** Returns the text of the document that a frame shows. Never rejects: a failure becomes a document with its reason. */
export async function frameDocument( asked: FrameRequest, site: { scope: string; url: string }, ask: Ask ): Promise< string > {
	const home = `${ site.url }/`;
	const sentence = ( title: string, text: string ) => withShim( sentencePage( title, text, home ), home );
	try {
		let url = new URL( asked.url );
		if ( url.searchParams.has( 'customize_messenger_channel' ) ) {
			return sentence( 'The Customizer has no preview here', 'The preview talks to the Customizer by the address of its documents, and documents of this sandbox have none. The owner of the site can give sandboxes a host of their own (WP_CODEBOX_BROWSER_HOST in wp-config.php): there the preview works. To see a setting here, publish it and open the front page.' );
		}
		let { method, body, contentType } = asked;
		for ( let redirects = 0; redirects <= mostRedirects; redirects += 1 ) {
			url.hash = '';
			if ( ! url.href.startsWith( home ) ) {
				return sentence( 'A frame of another site', `The sandbox does not open other sites: ${ url.href }` );
			}
			const headers: Record< string, string > = { accept: 'text/html' };
			if ( undefined !== contentType && undefined !== body ) {
				headers[ 'content-type' ] = contentType;
			}
			const answer = await ask( { type: 'wp-codebox-browser-request', scope: site.scope, url: url.href, method: 'POST' === method ? 'POST' : 'GET', headers, body: 'POST' === method ? body ?? null : null, navigation: true, framed: true } );
			const header = ( name: string ) => answer.headers.find( ( [ one ] ) => one.toLowerCase() === name )?.[ 1 ] ?? '';
			const location = header( 'location' );
			if ( answer.status >= 300 && answer.status < 400 && '' !== location ) {
				url = new URL( location, url );
				// 307 and 308 keep method and body; all other redirects become GET, as in browsers.
				[ method, body, contentType ] = 307 === answer.status || 308 === answer.status ? [ method, body, contentType ] : [ 'GET', undefined, undefined ];
				continue;
			}
			const type = header( 'content-type' );
			if ( ! type.startsWith( 'text/html' ) ) {
				return sentence( 'No page', `The address of this frame is not a page (${ type || 'no type' }).` );
			}
			return new TextDecoder().decode( answer.body ?? new Uint8Array() );
		}
		return sentence( 'Too many redirects', `The address of this frame leads to another one more than ${ mostRedirects } times.` );
	} catch ( thrown ) {
		return sentence( 'This frame has no page', thrown instanceof Error ? thrown.message : String( thrown ) );
	}
}
