/**
 * Downloads and the browser's cache of them.
 *
 * Every file is compared with its sha256, also when it comes from the cache. A browser that denies storage, or
 * whose storage is full, works without the cache: `state` says so.
 *
 * A file may have a role, such as core archive. It replaces the cached file of the same role and the same site, which is
 * useless after an update of WordPress. Files of other sites stay, because all sites of one origin share the cache.
 */
import { EngineError, type EngineFailure, type HashedFile } from './api.js';

const cacheName = 'wp-codebox-browser-v1';
/** Changes when the way of installing changes, so that databases of older versions are not used. */
const databaseRules = '1';
const keptDays = 30;

/** Whether files can be kept. */
export type CacheState = 'available' | 'denied' | 'full';

async function digest( bytes: Uint8Array ): Promise< string > {
	const hash = new Uint8Array( await crypto.subtle.digest( 'SHA-256', bytes as BufferSource ) );
	return Array.from( hash, ( byte ) => byte.toString( 16 ).padStart( 2, '0' ) ).join( '' );
}

/** Fetches, checks and keeps files of one page. */
export class AssetStore {
	private cache: Cache | null = null;
	state: CacheState = 'available';

	/** `site` is the address of the site's core files; `notice` is called once when the browser cannot store files. */
	constructor( private readonly site: string, private readonly notice: ( failure: EngineFailure ) => void ) {}

	async open(): Promise< void > {
		try {
			this.cache = await caches.open( cacheName );
			await this.forgetOld( this.cache );
		} catch ( thrown ) {
			this.fail( thrown );
		}
	}

	/** Returns the checked contents of a file. `received` is called with the size of every piece, in bytes. */
	async get( file: HashedFile, received: ( bytes: number ) => void, role = '' ): Promise< Uint8Array > {
		const key = this.key( `file/${ file.sha256 }` );
		const kept = await this.read( key );
		if ( null !== kept ) {
			if ( await digest( kept ) === file.sha256 ) {
				received( kept.byteLength );
				return kept;
			}
			await this.cache?.delete( key ).catch( () => false );
		}
		const bytes = await download( file, received );
		const actual = await digest( bytes );
		if ( actual !== file.sha256 ) {
			throw new EngineError( 'wp_codebox_browser_asset_hash_mismatch', `${ shortName( file.url ) } does not have the contents that the site announced (${ bytes.byteLength } bytes, sha256 ${ actual.slice( 0, 12 ) }…).`, 'Reload the page. If it happens again, a cache or proxy changes the file, or the installation of the browser files is broken.' );
		}
		await this.write( key, bytes, actual, role );
		return bytes;
	}

	/** Returns the installed database of a core archive, or null. */
	async database( coreKey: string ): Promise< Uint8Array | null > {
		const key = this.databaseKey( coreKey );
		const entry = await this.cache?.match( key ).catch( () => undefined );
		if ( undefined === entry || null === entry ) {
			return null;
		}
		const bytes = new Uint8Array( await entry.arrayBuffer() );
		return await digest( bytes ) === entry.headers.get( 'x-sha256' ) ? bytes : null;
	}

	/** Keeps the installed database of a core archive. */
	async keepDatabase( coreKey: string, bytes: Uint8Array ): Promise< void > {
		await this.write( this.databaseKey( coreKey ), bytes, await digest( bytes ), 'database' );
	}

	private databaseKey( coreKey: string ): string {
		return this.key( `database/${ databaseRules }/${ encodeURIComponent( coreKey ) }` );
	}

	private key( name: string ): string {
		return new URL( `/wp-codebox-browser-cache/${ name }`, location.origin ).href;
	}

	private async read( key: string ): Promise< Uint8Array | null > {
		try {
			const entry = await this.cache?.match( key );
			return undefined === entry ? null : new Uint8Array( await entry.arrayBuffer() );
		} catch {
			return null;
		}
	}

	private async write( key: string, bytes: Uint8Array, sha256: string, role: string ): Promise< void > {
		const cache = this.cache;
		if ( null === cache ) {
			return;
		}
		const owner = '' === role ? '' : `${ this.site } ${ role }`;
		try {
			// Remove the old file first: there may be no space for both.
			if ( '' !== owner ) {
				await this.forget( cache, ( headers ) => owner === headers.get( 'x-owner' ) );
			}
			await cache.put( key, new Response( bytes as BodyInit, { headers: { 'x-sha256': sha256, 'x-kept': String( Date.now() ), 'x-owner': owner } } ) );
		} catch ( thrown ) {
			this.fail( thrown );
		}
	}

	/** Goes on without the cache. Several files are written at once; only the first failure is reported. */
	private fail( thrown: unknown ): void {
		this.cache = null;
		if ( 'available' !== this.state ) {
			return;
		}
		if ( thrown instanceof DOMException && 'QuotaExceededError' === thrown.name ) {
			this.state = 'full';
			this.notice( { code: 'wp_codebox_browser_storage_full', message: 'The storage of this browser is full, so nothing is kept for the next visit.', hint: 'The sandbox works. Free some storage to let it start faster next time.' } );
			return;
		}
		this.state = 'denied';
		this.notice( { code: 'wp_codebox_browser_storage_denied', message: 'This browser does not allow the site to keep files, so every start downloads them again.', hint: 'The sandbox works. Allow site data for this site to let it start faster.' } );
	}

	private forgetOld( cache: Cache ): Promise< void > {
		return this.forget( cache, ( headers ) => Number( headers.get( 'x-kept' ) ?? 0 ) < Date.now() - keptDays * 86_400_000 );
	}

	private async forget( cache: Cache, useless: ( headers: Headers ) => boolean ): Promise< void > {
		for ( const request of await cache.keys() ) {
			const entry = await cache.match( request );
			if ( undefined !== entry && useless( entry.headers ) ) {
				await cache.delete( request );
			}
		}
	}
}

/** File name of a URL, without its query, which may hold a token. */
export function shortName( url: string ): string {
	return new URL( url, location.href ).pathname.split( '/' ).pop() ?? '';
}

async function download( file: HashedFile, received: ( bytes: number ) => void ): Promise< Uint8Array > {
	const name = shortName( file.url );
	if ( new URL( file.url, location.href ).origin !== location.origin ) {
		throw new EngineError( 'wp_codebox_browser_asset_missing', `${ name } is on another host, and nothing is loaded from other hosts.`, 'Serve the browser files from the address of this site.' );
	}
	let response: Response;
	try {
		response = await fetch( file.url, { credentials: 'same-origin', redirect: 'error' } );
	} catch {
		throw new EngineError( 'wp_codebox_browser_asset_missing', `${ name } could not be loaded.`, 'Check the connection to the site, then open the sandbox again.' );
	}
	if ( ! response.ok || null === response.body ) {
		throw new EngineError( 'wp_codebox_browser_asset_missing', `The site does not serve ${ name } (status ${ response.status }).`, 'Install the browser files again, or open the sandbox again when the link has expired.' );
	}
	const pieces: Uint8Array[] = [];
	let total = 0;
	const reader = response.body.getReader();
	for ( ;; ) {
		const { done, value } = await reader.read().catch( () => {
			throw new EngineError( 'wp_codebox_browser_asset_missing', `The connection broke while ${ name } was loaded.`, 'Open the sandbox again.' );
		} );
		if ( done ) {
			break;
		}
		pieces.push( value );
		total += value.byteLength;
		received( value.byteLength );
	}
	const bytes = new Uint8Array( total );
	let at = 0;
	for ( const piece of pieces ) {
		bytes.set( piece, at );
		at += piece.byteLength;
	}
	return bytes;
}
