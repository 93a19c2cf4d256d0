/**
 * Client module: starts a disposable WordPress in a frame of this page.
 *
 * This page loads every file and hands the bytes to the remote page, so the remote page needs no credentials
 * and may be on another host. See `api.ts` for the interface and `docs/browser-sessions.md` for the model.
 */
import { EngineError, type Blueprint, type CodeboxSource, type PlaygroundClient, type StartOptions } from './api.js';
import { AssetStore } from './assets.js';
import { ClientSession } from './session.js';
import { closed } from './errors.js';
import { openRemote, type RemotePorts } from './handshake.js';
import { BootProgress } from './progress.js';
import { runtimeFile, sqliteName, validScope, wasmName, type BootInput, type BootOutput } from './protocol.js';
import { loadResources } from './resources.js';
import { fetchStatic } from './statics.js';

export { EngineError };
export type * from './api.js';

/** Starts WordPress and resolves when the landing page can be opened. */
export async function startPlaygroundWeb( options: StartOptions ): Promise< PlaygroundClient > {
	const progress = new BootProgress( options.onProgress ?? ( () => {} ) );
	let remote: Promise< RemotePorts > | undefined;
	const aborted = new Promise< never >( ( _resolve, reject ) => {
		options.signal?.addEventListener( 'abort', () => reject( closed() ), { once: true } );
		if ( options.signal?.aborted ) {
			reject( closed() );
		}
	} );
	aborted.catch( () => {} );
	const bound = < Value >( work: Promise< Value > ): Promise< Value > => Promise.race( [ work, aborted, progress.stalled ] );
	try {
		return await bound( boot( options, progress, ( opened ) => {
			remote = opened;
		} ) );
	} catch ( thrown ) {
		// The remote page unregisters its service worker, even if this page is still opening. Wait for that 5 seconds at most.
		const ended = remote?.then( async ( ports ) => {
			await ports.control.call( 'destroy' );
			ports.close();
		} ).catch( () => {} );
		await Promise.race( [ ended, new Promise( ( resolve ) => setTimeout( resolve, 5000 ) ) ] );
		options.iframe.src = 'about:blank';
		throw thrown;
	} finally {
		progress.end();
	}
}

async function boot( options: StartOptions, progress: BootProgress, opened: ( remote: Promise< RemotePorts > ) => void ): Promise< PlaygroundClient > {
	const blueprint = options.blueprint ?? {};
	const source = blueprint.codebox;
	if ( undefined === source ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', 'The blueprint names no WordPress files (blueprint.codebox).', 'Create the session with wp-codebox/create-browser-playground-session on this site.' );
	}
	const scope = options.scope ?? `s${ crypto.randomUUID().replaceAll( '-', '' ).slice( 0, 16 ) }`;
	if ( ! validScope( scope ) ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', `The scope ${ JSON.stringify( scope ) } is not a name of letters, digits, "-" and "_".` );
	}
	requireFeatures();
	const build = source.php_build ?? ( 'Suspending' in WebAssembly ? 'jspi' : 'asyncify' );
	const store = new AssetStore( new URL( source.statics.includes, location.href ).href, ( failure ) => progress.notice( failure ) );
	await store.open();

	// The remote page loads while the files are loaded.
	const remoteReady = openRemote( options.iframe, options.remoteUrl, scope, source.isolation );
	opened( remoteReady );
	const files = await Promise.all( [ loadFiles( source, build, store, progress ), loadResources( blueprint ), remoteReady ] );
	const [ input, steps, remote ] = files;

	remote.worker.on( 'progress', ( data ) => {
		const { stage, done } = data as { stage: 'runtime' | 'files' | 'install' | 'roots' | 'blueprint'; done: number };
		progress.move( stage, done );
	} );
	const allowed = source.statics;
	remote.serveStatics( ( path ) => fetchStatic( allowed, path ) );

	const fromCache = null !== input.database;
	const boot: BootInput = { ...input, siteUrl: remote.siteUrl, constants: blueprint.constants ?? {} };
	const output = await remote.worker.call< BootOutput >( 'boot', [ boot ], transferables( boot ) );
	if ( null !== output.database ) {
		await store.keepDatabase( databaseKey( source ), output.database );
	}
	const session = new ClientSession( remote, store, progress, {
		php: output.php,
		build,
		wordpress: output.wordpress,
		isolation: source.isolation,
		database: fromCache ? 'cache' : 'installer',
	} );
	await session.applyDuringBoot( steps );
	progress.move( 'blueprint' );
	options.onClientConnected?.( session );
	await session.goTo( blueprint.landingPage ?? '/' );
	progress.move( 'open' );
	progress.move( 'ready' );
	return session;
}

function requireFeatures(): void {
	if ( ! isSecureContext || ! ( 'serviceWorker' in navigator ) || undefined === navigator.serviceWorker ) {
		throw new EngineError( 'wp_codebox_browser_no_service_worker', 'This browser offers no service worker for this page.', 'Open the site by https, outside of a private window, in a current browser.' );
	}
	if ( 'function' !== typeof DecompressionStream ) {
		throw new EngineError( 'wp_codebox_browser_no_decompression', 'This browser cannot unpack compressed files (DecompressionStream).', 'Use a browser version from 2023 or later.' );
	}
}

function databaseKey( source: CodeboxSource ): string {
	const sqlite = runtimeFile( source.runtime.files, sqliteName );
	return `${ source.core.key }/${ source.core.sha256 }/${ sqlite?.sha256 ?? '' }`;
}

type LoadedFiles = Omit< BootInput, 'siteUrl' | 'constants' >;

async function loadFiles( source: CodeboxSource, build: 'jspi' | 'asyncify', store: AssetStore, progress: BootProgress ): Promise< LoadedFiles > {
	const big = ( name: string ) => {
		const file = runtimeFile( source.runtime.files, name );
		if ( undefined === file ) {
			throw new EngineError( 'wp_codebox_browser_asset_missing', `The site does not list ${ name }.`, 'Install the browser files of this plugin version.' );
		}
		return { url: new URL( file.name, new URL( source.runtime.base_url, location.href ) ).href, sha256: file.sha256, bytes: file.bytes };
	};
	const roots = source.roots ?? [];
	const wanted = [ big( wasmName( build ) ), source.core, big( sqliteName ), ...( source.wp_cli ? [ source.wp_cli ] : [] ), ...roots.flatMap( ( root ) => root.overlay ? [ root.archive, root.overlay ] : [ root.archive ] ) ];
	const total = wanted.reduce( ( sum, file ) => sum + file.bytes, 0 ) || 1;
	let received = 0;
	const get = ( file: { url: string; sha256: string; bytes: number }, role = '' ) => store.get( file, ( bytes ) => {
		received += bytes;
		progress.move( 'download', Math.min( 0.99, received / total ) );
	}, role );
	const [ wasm, core, sqlite, wpCli, database, unpacked ] = await Promise.all( [
		get( big( wasmName( build ) ), wasmName( build ) ),
		get( source.core, 'core' ),
		get( big( sqliteName ), sqliteName ),
		source.wp_cli ? get( source.wp_cli ) : null,
		store.database( databaseKey( source ) ),
		Promise.all( roots.map( async ( root ) => ( { root, archive: await get( root.archive ), overlay: root.overlay ? await get( root.overlay ) : null } ) ) ),
	] );
	progress.move( 'download' );
	return { isolation: source.isolation, build, wasm, core, sqlite, database, roots: unpacked, statics: source.statics, wpCli };
}

/** Returns the buffers that may move to the worker instead of being copied, without duplicates. */
function transferables( input: BootInput ): Transferable[] {
	const all = [ input.wasm, input.core, input.sqlite, input.database, input.wpCli, ...input.roots.flatMap( ( one ) => [ one.archive, one.overlay ] ) ];
	return [ ...new Set( all.filter( ( one ) => null !== one ).map( ( one ) => one.buffer as ArrayBuffer ) ) ];
}

export type { Blueprint };
