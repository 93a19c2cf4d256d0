/** The WordPress of this worker: requests, PHP, files. One thing runs in PHP at a time. */
import { HttpCookieStore, PHPExecutionFailureError, PHPResponse, type PHP, type PHPRequestHandler, type StreamedPHPResponse } from '@php-wasm/universal';
import { EngineError, type RunAnswer, type SiteRequest } from './api.js';
import { Baseline } from './baseline.js';
import { CoreFiles } from './core-files.js';
import { bootSite, documentRoot, type Report } from './php-boot.js';
import type { BootInput, BootOutput } from './protocol.js';
import { DocumentRewriter } from './rewrite.js';
import { sentencePage } from './sentence.js';
import { staticType } from './statics.js';

/** An answer for the service worker. */
export interface SiteAnswer {
	status: number;
	headers: Array< [ string, string ] >;
	body: Uint8Array | null;
}

/** Callbacks of the worker that a site uses. */
export interface Surroundings {
	report: ( stage: string, done: number ) => void;
	message: ( data: string ) => void;
	problem: ( text: string ) => void;
	fetchStatic: ( path: string ) => Promise< Uint8Array | null >;
}

/** A booted site. */
export class Site {
	readonly baseline = new Baseline( () => this.php );
	readonly cookies = new HttpCookieStore();
	wpCli: Uint8Array | null = null;
	private readonly core = new CoreFiles();
	private readonly fetched = new Map< string, Uint8Array >();
	private queue: Promise< unknown > = Promise.resolve();
	private booted: { handler: PHPRequestHandler; php: PHP; input: Pick< BootInput, 'siteUrl' | 'isolation' | 'statics' >; rewriter: DocumentRewriter } | undefined;

	constructor( private readonly around: Surroundings ) {}

	async boot( input: BootInput ): Promise< BootOutput > {
		const { handler, php, phpVersion, database } = await bootSite( input, this.cookies, this.core, this.around.report as Report );
		const { siteUrl, isolation, statics } = input;
		const rewriter = new DocumentRewriter( siteUrl, this.usableStatics( siteUrl, statics ), {
			read: ( path ) => this.readFile( path ),
			unchanged: ( path, contents ) => this.core.unchanged( path, contents ),
			fetchStatic: ( path ) => this.fetchStatic( path ),
			respond: ( path ) => this.generated( path ),
		} );
		this.booted = { handler, php, input: { siteUrl, isolation, statics }, rewriter };
		this.wpCli = input.wpCli;
		php.onMessage( ( data ) => this.receive( data ) );
		for ( const { root, archive, overlay } of input.roots ) {
			this.baseline.add( root, archive, overlay );
		}
		this.around.report( 'roots', 1 );
		const wordpress = /\$wp_version\s*=\s*'([^']+)'/.exec( php.readFileAsText( `${ documentRoot }/wp-includes/version.php` ) )?.[ 1 ] ?? '';
		return { php: phpVersion, wordpress, database };
	}

	get php(): PHP {
		return this.ready().php;
	}

	get siteUrl(): string {
		return this.ready().input.siteUrl;
	}

	/** Runs one task when all earlier ones are done. The instance of PHP cannot do two things at once. */
	exclusive< Value >( task: () => Promise< Value > ): Promise< Value > {
		const done = this.queue.then( task, task );
		this.queue = done.catch( () => {} );
		return done;
	}

	/** Runs PHP outside of a request. Does not reject when the script fails: the answer has its errors and exit code. */
	run( options: { code?: string; scriptPath?: string; env?: Record< string, string > } ): Promise< RunAnswer > {
		return this.exclusive( async () => {
			try {
				return answerOf( await this.php.run( options as { code: string } ) );
			} catch ( thrown ) {
				if ( thrown instanceof PHPExecutionFailureError ) {
					return answerOf( thrown.response );
				}
				throw crashed( thrown );
			}
		} );
	}

	/** Starts PHP; `use` gets the output as a stream and reads it to the end. */
	stream< Value >( options: { code: string; env?: Record< string, string > }, use: ( response: StreamedPHPResponse ) => Promise< Value > ): Promise< Value > {
		return this.exclusive( async () => {
			try {
				return await use( await this.php.runStream( options ) );
			} catch ( thrown ) {
				throw crashed( thrown );
			}
		} );
	}

	/** One request, with the cookies of the session. */
	async request( request: SiteRequest ): Promise< RunAnswer > {
		return answerOf( await this.handle( request ) );
	}

	/** A request of the frame. In opaque mode, documents are made usable without an origin. */
	async respond( request: SiteRequest, navigation: boolean, framed = false ): Promise< SiteAnswer > {
		const url = request.url.split( '#' )[ 0 ] ?? request.url;
		let response: PHPResponse;
		try {
			response = await this.handle( { ...request, url } );
		} catch ( thrown ) {
			const failure = crashed( thrown );
			return { status: 500, headers: [ [ 'content-type', 'text/html; charset=utf-8' ] ], body: new TextEncoder().encode( sentencePage( 'PHP has crashed', `${ failure.message } ${ failure.hint ?? '' }`, `${ this.siteUrl }/` ) ) };
		}
		const headers = Object.entries( response.headers ).flatMap( ( [ name, values ] ) => values.map( ( value ): [ string, string ] => [ name, value ] ) );
		let body: Uint8Array = response.bytes;
		if ( 404 === response.httpStatusCode && ! navigation ) {
			const parent = await this.fetchStatic( decodeURIComponent( new URL( url ).pathname.slice( new URL( this.siteUrl ).pathname.length ) ) );
			if ( null !== parent ) {
				const type = staticType( new URL( url ).pathname ) ?? 'application/octet-stream';
				return { status: 200, headers: [ [ 'content-type', type ] ], body: parent };
			}
		}
		const type = response.headers[ 'content-type' ]?.[ 0 ] ?? '';
		const { input, rewriter } = this.ready();
		if ( navigation && 'opaque' === input.isolation && type.startsWith( 'text/html' ) && body.byteLength > 0 ) {
			body = new TextEncoder().encode( await rewriter.html( new TextDecoder().decode( body ), url, framed ) );
		}
		if ( navigation && 0 === body.byteLength && undefined === response.headers.location && ! [ 204, 205, 304 ].includes( response.httpStatusCode ) && ( '' === type || type.startsWith( 'text/html' ) ) ) {
			// When PHP dies without output, the frame must not stay blank.
			body = new TextEncoder().encode( sentencePage( 'An empty page', `WordPress answered with status ${ response.httpStatusCode } and nothing else. ${ response.errors }`, `${ this.siteUrl }/` ) );
			headers.push( [ 'content-type', 'text/html; charset=utf-8' ] );
		}
		return { status: response.httpStatusCode, headers, body };
	}

	private handle( request: SiteRequest ): Promise< PHPResponse > {
		const { handler, input } = this.ready();
		const url = new URL( request.url, `${ input.siteUrl }/` ).href;
		const absolute = request.url.startsWith( '/' ) ? input.siteUrl + request.url : url;
		if ( ! `${ absolute }/`.startsWith( `${ input.siteUrl }/` ) && ! absolute.startsWith( `${ input.siteUrl }?` ) ) {
			throw new EngineError( 'wp_codebox_browser_request_failed', `${ request.url } is not an address of the sandbox.` );
		}
		const { host: _host, cookie: _cookie, ...headers } = Object.fromEntries( Object.entries( request.headers ?? {} ).map( ( [ name, value ] ) => [ name.toLowerCase(), value ] ) );
		return this.exclusive( () => handler.request( { url: absolute, method: ( request.method ?? ( undefined === request.body ? 'GET' : 'POST' ) ) as 'GET', headers: headers as Record< string, string >, body: request.body } ) );
	}

	private readFile( path: string ): Uint8Array | null {
		const file = documentRoot + path;
		return ! path.split( '/' ).includes( '..' ) && this.php.isFile( file ) ? this.php.readFileAsBuffer( file ) : null;
	}

	private async fetchStatic( path: string ): Promise< Uint8Array | null > {
		const known = this.fetched.get( path );
		if ( undefined !== known ) {
			return known;
		}
		const bytes = await this.around.fetchStatic( path );
		if ( null !== bytes && bytes.byteLength < 2_000_000 ) {
			this.fetched.set( path, bytes );
		}
		return bytes;
	}

	private async generated( path: string ): Promise< { type: string; bytes: Uint8Array } | null > {
		try {
			const response = await this.handle( { url: path } );
			return 200 === response.httpStatusCode ? { type: response.headers[ 'content-type' ]?.[ 0 ] ?? '', bytes: response.bytes } : null;
		} catch {
			return null;
		}
	}

	/** Drops addresses of copies on the parent site that have another origin than the sandbox: its policy forbids those. */
	private usableStatics( siteUrl: string, statics: BootInput[ 'statics' ] ): BootInput[ 'statics' ] {
		const local = ( url: string ) => ( '' !== url && new URL( url, siteUrl ).origin === new URL( siteUrl ).origin ? new URL( url, siteUrl ).href : '' );
		return { includes: local( statics.includes ), admin: local( statics.admin ), themes: local( statics.themes ) };
	}

	private receive( data: string ): void {
		let problem: unknown;
		try {
			problem = ( JSON.parse( data ) as { wp_codebox_problem?: unknown } | null )?.wp_codebox_problem;
		} catch {
			problem = undefined;
		}
		if ( 'string' === typeof problem ) {
			this.around.problem( problem );
		} else {
			this.around.message( data );
		}
	}

	private ready(): NonNullable< Site[ 'booted' ] > {
		if ( undefined === this.booted ) {
			throw new EngineError( 'wp_codebox_browser_boot_failed', 'WordPress is not started yet.' );
		}
		return this.booted;
	}
}

function answerOf( response: PHPResponse ): RunAnswer {
	return { text: response.text, bytes: response.bytes, errors: response.errors, exitCode: response.exitCode, httpStatusCode: response.httpStatusCode, headers: response.headers };
}

function crashed( thrown: unknown ): EngineError {
	if ( thrown instanceof EngineError ) {
		return thrown;
	}
	return new EngineError( 'wp_codebox_browser_request_failed', `PHP could not finish: ${ thrown instanceof Error ? thrown.message : thrown }.`, 'Keep your changes, then reload the page.' );
}
