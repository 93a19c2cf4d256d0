/**
 * Rewrites the documents of an opaque sandbox.
 *
 * Their subresources bypass the service worker and go to the real server, without an origin. So each address of
 * a stylesheet, script or image below the site becomes either the address of the parent site's own copy, when the
 * file is an unchanged core or theme file, or a `data:` URL with its contents. Fonts and modules need CORS headers,
 * which the parent site does not send, so they always become `data:` URLs.
 */
import { withShim } from './opaque-shim.js';
import { parentUrl, staticType } from './statics.js';
import type { CodeboxSource } from './api.js';

/** What the rewriter asks of the site. Paths begin with a slash and are below the site. */
export interface SiteFiles {
	/** Contents of a file, or null when the sandbox has no such file. */
	read: ( path: string ) => Uint8Array | null;
	/** Whether the file is as the core archive had it. */
	unchanged: ( path: string, contents: Uint8Array ) => boolean;
	/** Contents of the file on the parent site; null when it has none. */
	fetchStatic: ( path: string ) => Promise< Uint8Array | null >;
	/** Answer of the site to a path that is not a static file. */
	respond: ( pathAndQuery: string ) => Promise< { type: string; bytes: Uint8Array } | null >;
}

type Kind = 'style' | 'script' | 'module' | 'image' | 'font';

const tag = /<!--[\s\S]*?-->|(<style\b(?:"[^"]*"|'[^']*'|[^'">])*>)([\s\S]*?)(<\/style\s*>)|(<script\b(?:"[^"]*"|'[^']*'|[^'">])*>)([\s\S]*?)(<\/script\s*>)|<[a-z](?:"[^"]*"|'[^']*'|[^'">])*>/gi;
const cssUrl = /(@import\s+)?url\(\s*(?:"([^"]*)"|'([^']*)'|([^)'"\s][^)]*?))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')/gi;
const importDepth = 5;
/** Number of generated assets that are inlined in one document; the addresses of further ones stay unchanged. */
const generatedLimit = 20;
const largestInlined = 8_000_000;

/** Rewrites documents of one site. Keeps the data URLs of files as long as their contents stay the same. */
export class DocumentRewriter {
	private readonly kept = new Map< string, { contents: Uint8Array; url: string } >();
	private generated = 0;

	constructor( private readonly siteUrl: string, private readonly statics: CodeboxSource[ 'statics' ], private readonly files: SiteFiles ) {}

	/** Returns the document with usable addresses. `framed`: a frame of another document shows it. */
	async html( text: string, documentUrl: string, framed = false ): Promise< string > {
		this.generated = 0;
		const base = documentUrl;
		const pieces: Array< string | Promise< string > > = [];
		let last = 0;
		for ( const match of text.matchAll( tag ) ) {
			pieces.push( text.slice( last, match.index ), this.element( match, base ) );
			last = match.index + match[ 0 ].length;
		}
		pieces.push( text.slice( last ) );
		return withShim( ( await Promise.all( pieces ) ).join( '' ), framed ? base : undefined );
	}

	/** Returns a stylesheet in which no address is relative. */
	async css( text: string, base: string, depth = 0 ): Promise< string > {
		const pieces: Array< string | Promise< string > > = [];
		let last = 0;
		for ( const match of text.matchAll( cssUrl ) ) {
			const [ whole, imported, quoted, single, bare, importQuoted, importSingle ] = match;
			const address = quoted ?? single ?? bare ?? importQuoted ?? importSingle ?? '';
			const isImport = undefined !== imported || undefined !== importQuoted || undefined !== importSingle;
			const kind: Kind = isImport ? 'style' : /\.(woff2?|ttf|otf|eot)([?#]|$)/i.test( address ) ? 'font' : 'image';
			pieces.push( text.slice( last, match.index ), this.asset( address, base, kind, depth + 1 ).then( ( url ) => {
				if ( null === url ) {
					return whole;
				}
				return isImport ? `@import url("${ url }")` : `url("${ url }")`;
			} ) );
			last = match.index + whole.length;
		}
		pieces.push( text.slice( last ) );
		return ( await Promise.all( pieces ) ).join( '' );
	}

	private async element( match: RegExpMatchArray, base: string ): Promise< string > {
		const [ whole, styleOpen, styleText, styleClose, scriptOpen, scriptText, scriptClose ] = match;
		if ( undefined !== styleOpen ) {
			return styleOpen + await this.css( styleText ?? '', base ) + styleClose;
		}
		if ( undefined !== scriptOpen ) {
			return this.script( scriptOpen, scriptText ?? '', scriptClose ?? '', base );
		}
		const name = /^<([a-z]+)/i.exec( whole )?.[ 1 ]?.toLowerCase();
		if ( 'link' === name ) {
			return this.link( whole, base );
		}
		if ( 'iframe' === name ) {
			return frameElement( whole, base );
		}
		let result = whole;
		if ( undefined !== name && [ 'img', 'source', 'video', 'audio', 'input', 'track' ].includes( name ) ) {
			result = await this.attribute( result, 'src', base, 'image' );
			result = await this.attribute( result, 'poster', base, 'image' );
			result = await this.sourceSet( result, base );
		}
		const style = attributeOf( result, 'style' );
		if ( undefined !== style && style.value.includes( 'url(' ) ) {
			result = withAttribute( result, 'style', await this.css( decode( style.value ), base ) );
		}
		return result;
	}

	private async script( open: string, text: string, close: string, base: string ): Promise< string > {
		const type = attributeOf( open, 'type' )?.value.toLowerCase() ?? '';
		if ( 'importmap' === type ) {
			return open + await this.importMap( text, base ) + close;
		}
		const inline = '' === type || /javascript|module|json/.test( type ) ? this.addressesInScript( text ) : text;
		return await this.attribute( open, 'src', base, 'module' === type ? 'module' : 'script' ) + inline + close;
	}

	/** Replaces addresses of core files in the text of a script, with or without escaped slashes, by those of the parent site. */
	private addressesInScript( text: string ): string {
		const plain = new URL( this.siteUrl );
		const forms = [ this.siteUrl, plain.pathname ].flatMap( ( form ) => [ form, form.replaceAll( '/', '\\/' ) ] ).map( ( form ) => form.replace( /[.*+?^${}()|[\]\\]/g, '\\$&' ) );
		return text.replace( new RegExp( `(?:${ forms.join( '|' ) })((?:\\\\?/)wp-(?:includes|admin)(?:\\\\?/)[\\w./\\\\-]+)`, 'g' ), ( whole, found: string ) => {
			const escaped = found.includes( '\\/' );
			const path = found.replaceAll( '\\/', '/' );
			const parent = path.startsWith( '/wp-includes/js/tinymce' ) && undefined === staticType( path ) ? parentUrl( this.statics, `${ path }/x.js` )?.slice( 0, -5 ) ?? null : parentUrl( this.statics, path );
			const contents = this.files.read( path );
			if ( null === parent || ( null !== contents && ! this.files.unchanged( path, contents ) ) ) {
				return whole;
			}
			return escaped ? parent.replaceAll( '/', '\\/' ) : parent;
		} );
	}

	private async importMap( text: string, base: string ): Promise< string > {
		let map: { imports?: Record< string, string > };
		try {
			map = JSON.parse( text );
		} catch {
			return text;
		}
		const imports: Record< string, string > = {};
		await Promise.all( Object.entries( map.imports ?? {} ).map( async ( [ name, address ] ) => {
			imports[ name ] = await this.asset( address, base, 'module', 0 ) ?? address;
		} ) );
		return JSON.stringify( { ...map, imports } ).replaceAll( '<', '\\u003c' );
	}

	private async link( whole: string, base: string ): Promise< string > {
		const rel = ( attributeOf( whole, 'rel' )?.value ?? '' ).toLowerCase().split( /\s+/ );
		// These would contact other hosts, or preload files from addresses that do not work in the sandbox.
		if ( rel.some( ( one ) => [ 'dns-prefetch', 'preconnect', 'prefetch', 'prerender', 'modulepreload', 'preload', 'manifest' ].includes( one ) ) ) {
			return '';
		}
		if ( rel.includes( 'stylesheet' ) ) {
			return this.attribute( whole, 'href', base, 'style' );
		}
		return rel.some( ( one ) => one.includes( 'icon' ) ) ? this.attribute( whole, 'href', base, 'image' ) : whole;
	}

	private async attribute( whole: string, name: string, base: string, kind: Kind ): Promise< string > {
		const found = attributeOf( whole, name );
		if ( undefined === found ) {
			return whole;
		}
		const url = await this.asset( decode( found.value ), base, kind, 0 );
		return null === url ? whole : withAttribute( whole, name, url );
	}

	private async sourceSet( whole: string, base: string ): Promise< string > {
		const found = attributeOf( whole, 'srcset' );
		if ( undefined === found ) {
			return whole;
		}
		const candidates = await Promise.all( decode( found.value ).split( /,\s+/ ).map( async ( one ) => {
			const [ address, ...size ] = one.trim().split( /\s+/ );
			return [ await this.asset( address ?? '', base, 'image', 0 ) ?? address, ...size ].join( ' ' );
		} ) );
		return withAttribute( whole, 'srcset', candidates.join( ', ' ) );
	}

	/** Returns the address that works for a document without an origin, or null to leave it as it is. */
	private async asset( address: string, base: string, kind: Kind, depth: number ): Promise< string | null > {
		const url = resolve( address, base );
		if ( null === url || ! url.href.startsWith( `${ this.siteUrl }/` ) || depth > importDepth ) {
			// In a stylesheet that becomes a data: URL, relative addresses do not work.
			return null !== url && depth > 0 && ! /^(data|blob):/.test( address ) ? url.href : null;
		}
		const path = pathOf( url, this.siteUrl );
		const parent = parentUrl( this.statics, path );
		const contents = undefined === staticType( path ) ? null : this.files.read( path );
		if ( null !== contents ) {
			const shared = null !== parent && 'font' !== kind && 'module' !== kind && this.files.unchanged( path, contents ) && ! ( 'style' === kind && hasFonts( contents ) );
			return shared ? parent + url.search : this.inlined( path, contents, kind, depth );
		}
		if ( null !== parent ) {
			if ( 'font' !== kind && 'module' !== kind ) {
				return parent + url.search;
			}
			const fetched = await this.files.fetchStatic( path );
			return null === fetched ? null : this.inlined( path, fetched, kind, depth );
		}
		if ( undefined === staticType( path ) && 'font' !== kind ) {
			return this.generatedAsset( path + url.search, kind );
		}
		return null;
	}

	private async inlined( path: string, contents: Uint8Array, kind: Kind, depth: number ): Promise< string | null > {
		if ( contents.byteLength > largestInlined ) {
			return null;
		}
		const kept = this.kept.get( path );
		// A stylesheet may include other files that changed, so only URLs of other kinds are reused.
		if ( 'style' !== kind && undefined !== kept && kept.contents.byteLength === contents.byteLength && kept.contents.every( ( byte, index ) => byte === contents[ index ] ) ) {
			return kept.url;
		}
		const bytes = 'style' === kind ? new TextEncoder().encode( await this.css( new TextDecoder().decode( contents ), this.siteUrl + path, depth ) ) : contents;
		const url = dataUrl( bytes, typeFor( kind, staticType( path ) ) );
		this.kept.set( path, { contents: contents.slice(), url } );
		return url;
	}

	/** Returns a data: URL with a stylesheet, script or image that PHP makes; null when the address must stay. */
	private async generatedAsset( pathAndQuery: string, kind: Kind ): Promise< string | null > {
		this.generated += 1;
		if ( this.generated > generatedLimit ) {
			return null;
		}
		const answer = await this.files.respond( pathAndQuery );
		if ( null === answer || answer.type.startsWith( 'text/html' ) ) {
			return null;
		}
		const bytes = 'style' === kind ? new TextEncoder().encode( await this.css( new TextDecoder().decode( answer.bytes ), this.siteUrl + pathAndQuery, 1 ) ) : answer.bytes;
		return dataUrl( bytes, typeFor( kind, answer.type ) );
	}
}

function typeFor( kind: Kind, type: string | undefined ): string {
	const plain = 'style' === kind ? 'text/css' : 'script' === kind || 'module' === kind ? 'text/javascript' : type ?? 'application/octet-stream';
	return plain.startsWith( 'text/' ) ? `${ plain.split( ';' )[ 0 ] };charset=utf-8` : plain;
}

function dataUrl( bytes: Uint8Array, type: string ): string {
	let binary = '';
	for ( let at = 0; at < bytes.byteLength; at += 0x8000 ) {
		binary += String.fromCharCode( ...bytes.subarray( at, at + 0x8000 ) );
	}
	return `data:${ type };base64,${ btoa( binary ) }`;
}

function hasFonts( css: Uint8Array ): boolean {
	return /url\(\s*['"]?(?!['"]?data:)[^)]*\.(woff2?|ttf|otf|eot)/i.test( new TextDecoder().decode( css ) );
}

function resolve( address: string, base: string ): URL | null {
	if ( '' === address || address.startsWith( '#' ) ) {
		return null;
	}
	try {
		return new URL( address, base );
	} catch {
		return null;
	}
}

function pathOf( url: URL, siteUrl: string ): string {
	const path = url.pathname.slice( new URL( siteUrl ).pathname.length );
	try {
		return decodeURIComponent( path );
	} catch {
		return path;
	}
}

interface Attribute {
	value: string;
	start: number;
	end: number;
}

function attributeOf( whole: string, name: string ): Attribute | undefined {
	const found = new RegExp( `[\\s"']${ name }\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>"']+))`, 'i' ).exec( whole );
	if ( null === found ) {
		return undefined;
	}
	return { value: found[ 1 ] ?? found[ 2 ] ?? found[ 3 ] ?? '', start: found.index + 1, end: found.index + found[ 0 ].length };
}

function withAttribute( whole: string, name: string, value: string ): string {
	const found = attributeOf( whole, name );
	const text = `${ name }="${ value.replaceAll( '&', '&amp;' ).replaceAll( '"', '&quot;' ) }"`;
	return undefined === found ? whole : whole.slice( 0, found.start ) + text + whole.slice( found.end );
}

/** Renames `src` of a frame for the script of `opaque-frames.ts`: with `src`, Chromium would connect to its host before the policy stops it. */
function frameElement( whole: string, base: string ): string {
	const found = attributeOf( whole, 'src' );
	const url = undefined === found ? null : resolve( decode( found.value ), base );
	return undefined === found || null === url || ! /^https?:$/.test( url.protocol ) ? whole : `${ whole.slice( 0, found.start ) }data-codebox-${ whole.slice( found.start ) }`;
}

const entities: Record< string, string > = { amp: '&', quot: '"', apos: "'", lt: '<', gt: '>' };

function decode( value: string ): string {
	return value.replace( /&(?:#(\d+)|#x([0-9a-f]+)|(amp|quot|apos|lt|gt));/gi, ( _whole, decimal, hex, name ) => {
		if ( decimal ) {
			return String.fromCodePoint( Number( decimal ) );
		}
		return hex ? String.fromCodePoint( parseInt( hex, 16 ) ) : entities[ String( name ).toLowerCase() ] ?? '';
	} );
}
