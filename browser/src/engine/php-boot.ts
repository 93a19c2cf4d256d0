/** Starts PHP and WordPress in this worker. */
import { loadPHPRuntime, PHPResponse, type HttpCookieStore, type PHP, type PHPLoaderModule, type PHPRequestHandler } from '@php-wasm/universal';
import { bootWordPressAndRequestHandler } from '@wp-playground/wordpress';
import { createSpawnHandler } from '@php-wasm/util';
import { EngineError } from './api.js';
import type { CoreFiles } from './core-files.js';
import { placeFiles } from './memory-files.js';
import sandboxPlugin from './php/sandbox.php';
import type { BootInput } from './protocol.js';
import { staticType } from './statics.js';
import { indexZip, type PackedFile } from './packed-files.js';

export const documentRoot = '/wordpress';
const databaseDirectory = `${ documentRoot }/wp-content/database`;
const databaseFile = `${ databaseDirectory }/.ht.sqlite`;

/** A started WordPress. */
export interface BootedSite {
	handler: PHPRequestHandler;
	php: PHP;
	phpVersion: string;
	/** The database right after the installation; null when the page supplied one. */
	database: Uint8Array | null;
}

/** Steps of the boot, for the progress of the page. */
export type Report = ( stage: 'runtime' | 'files' | 'install', done: number ) => void;

/** Boots WordPress; adds the static files of the core archive to `core`. */
export async function bootSite( input: BootInput, cookies: HttpCookieStore, core: CoreFiles, report: Report ): Promise< BootedSite > {
	closeNetwork();
	const module = await compile( input.wasm );
	const loader = ( await import( new URL( `./php-${ input.build }.js`, import.meta.url ).href ) ) as PHPLoaderModule;
	report( 'runtime', 1 );
	const handler = await bootWordPressAndRequestHandler( {
		createPhpRuntime: () => loadPHPRuntime( loader, {
			phpWasmAsyncMode: input.build,
			instantiateWasm: ( imports, receive ) => {
				WebAssembly.instantiate( module, imports ).then( ( instance ) => receive( instance, module ), ( thrown ) => console.error( thrown ) );
				return {};
			},
		} ),
		maxPhpInstances: 1,
		sapiName: 'cli',
		siteUrl: input.siteUrl,
		documentRoot,
		cookieStore: cookies,
		phpIniEntries: {
			memory_limit: '256M', max_execution_time: '0', allow_url_fopen: '0', display_errors: '1', error_reporting: '32767', 'session.save_path': '/tmp',
			// Playground's default is a cache of opcodes in files, which every request unpacks again. With the cache in memory a request
			// takes half the time. A file is compared with its cached version each time: the page edits files while PHP runs.
			'opcache.file_cache_only': '0', 'opcache.file_cache': '', 'opcache.revalidate_freq': '0',
		},
		constants: {
			...input.constants,
			CONCATENATE_SCRIPTS: false,
			DISABLE_WP_CRON: true,
			AUTOMATIC_UPDATER_DISABLED: true,
			WP_HTTP_BLOCK_EXTERNAL: true,
			WP_CODEBOX_BROWSER_ISOLATION: input.isolation,
		},
		createFiles: { '/internal/shared/mu-plugins': { 'wp-codebox-sandbox.php': sandboxPlugin } },
		getFileNotFoundAction: ( path ) => {
			const type = staticType( path );
			if ( undefined !== type && ! [ 'txt', 'xml', 'json' ].includes( path.slice( path.lastIndexOf( '.' ) + 1 ) ) ) {
				return { type: 'response', response: new PHPResponse( 404, { 'content-type': [ 'text/plain; charset=utf-8' ] }, new TextEncoder().encode( 'This file does not exist in the sandbox.' ) ) };
			}
			return { type: 'internal-redirect', uri: '/index.php' };
		},
		spawnHandler: () => createSpawnHandler( async ( command: string[], process ) => {
			process.stderr( `${ command[ 0 ] ?? 'command' }: the sandbox in a browser has no other programs than PHP\n` );
			process.exit( 127 );
		} ),
		wordpressInstallMode: null === input.database ? 'install-from-existing-files' : 'do-not-attempt-installing',
		sqliteIntegrationPluginZip: new File( [ input.sqlite as BlobPart ], 'sqlite.zip' ),
		hooks: {
			beforeWordPressFiles: ( php ) => {
				const files = coreFiles( input.core );
				core.remember( files );
				placeFiles( php, documentRoot, files );
				php.mkdir( `${ documentRoot }/wp-content/plugins` );
				report( 'files', 1 );
			},
			beforeDatabaseSetup: ( php ) => {
				if ( null !== input.database ) {
					php.mkdir( databaseDirectory );
					php.writeFile( databaseFile, input.database );
				}
			},
		},
	} );
	const php = await handler.getPrimaryPhp();
	report( 'install', 1 );
	const database = null === input.database ? php.readFileAsBuffer( databaseFile ).slice() : null;
	// The function that makes new runtimes of PHP keeps a reference to `input`; empty the archives to free their memory.
	input.core = input.sqlite = input.wasm = new Uint8Array();
	input.database = null;
	return { handler, php, phpVersion: await version( php ), database };
}

/** Core archives hold the files at the top, or below `wordpress/`. */
function coreFiles( archive: Uint8Array ): Map< string, PackedFile > {
	const files = indexZip( archive, 'The core archive' );
	const prefix = files.has( 'wp-load.php' ) ? '' : 'wordpress/';
	if ( ! files.has( `${ prefix }wp-load.php` ) ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', 'The core archive holds no WordPress (wp-load.php is missing).' );
	}
	return '' === prefix ? files : new Map( [ ...files ].map( ( [ name, file ] ) => [ name.slice( prefix.length ), file ] ) );
}

async function compile( packed: Uint8Array ): Promise< WebAssembly.Module > {
	try {
		const stream = new Blob( [ packed as BlobPart ] ).stream().pipeThrough( new DecompressionStream( 'deflate' ) );
		return await WebAssembly.compileStreaming( new Response( stream, { headers: { 'content-type': 'application/wasm' } } ) );
	} catch ( thrown ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', `This browser could not compile PHP (${ thrown instanceof Error ? thrown.message : thrown }).`, 'Close other tabs, or use another browser.' );
	}
}

/** Emscripten turns sockets of PHP into WebSockets, which would leave this worker. */
function closeNetwork(): void {
	Object.defineProperty( globalThis, 'WebSocket', {
		value: class {
			constructor() {
				throw new Error( 'The sandbox has no network.' );
			}
		},
	} );
}

async function version( php: PHP ): Promise< string > {
	return ( await php.run( { code: '<?php echo PHP_VERSION;' } ) ).text;
}
