/** The running WordPress as the page sees it: every function is a call to the worker or to the remote page. */
import type { Blueprint, ChangedFile, Diagnostics, EngineFailure, ExecOptions, ExecOutput, PlaygroundClient, Progress, RunAnswer, SiteRequest } from './api.js';
import type { AssetStore } from './assets.js';
import type { RemotePorts } from './handshake.js';
import type { BootProgress } from './progress.js';
import { loadResources, type ReadyStep } from './resources.js';

type Facts = Pick< Diagnostics, 'php' | 'build' | 'wordpress' | 'isolation' | 'database' >;

/** Implementation of `PlaygroundClient`. */
export class ClientSession implements PlaygroundClient {
	private readonly outputs = new Map< string, ( output: ExecOutput ) => void >();
	private readonly problems: string[] = [];
	private path = '/';

	constructor( private readonly remote: RemotePorts, private readonly store: AssetStore, private readonly progress: BootProgress, private readonly facts: Facts ) {
		remote.worker.on( 'output', ( data ) => {
			const output = data as ExecOutput;
			this.outputs.get( output.executionId )?.( output );
		} );
		remote.worker.on( 'problem', ( data ) => this.problem( String( data ) ) );
		remote.control.on( 'navigation', ( data ) => {
			this.path = String( data );
		} );
	}

	get documentRoot(): Promise< string > {
		return Promise.resolve( '/wordpress' );
	}

	get absoluteUrl(): Promise< string > {
		return Promise.resolve( this.remote.siteUrl );
	}

	run( options: { code: string } | { scriptPath: string } ): Promise< RunAnswer > {
		return this.worker( 'run', options );
	}

	request( request: SiteRequest ): Promise< RunAnswer > {
		return this.worker( 'request', request );
	}

	readFileAsText( path: string ): Promise< string > {
		return this.worker( 'readFileAsText', path );
	}

	readFileAsBuffer( path: string ): Promise< Uint8Array > {
		return this.worker( 'readFileAsBuffer', path );
	}

	writeFile( path: string, contents: string | Uint8Array ): Promise< void > {
		return this.worker( 'writeFile', path, contents );
	}

	mkdir( path: string ): Promise< void > {
		return this.worker( 'mkdir', path );
	}

	mkdirTree( path: string ): Promise< void > {
		return this.worker( 'mkdir', path );
	}

	unlink( path: string ): Promise< void > {
		return this.worker( 'unlink', path );
	}

	rmdir( path: string, options: { recursive?: boolean } = {} ): Promise< void > {
		return this.worker( 'rmdir', path, options );
	}

	mv( from: string, to: string ): Promise< void > {
		return this.worker( 'mv', from, to );
	}

	fileExists( path: string ): Promise< boolean > {
		return this.worker( 'fileExists', path );
	}

	isDir( path: string ): Promise< boolean > {
		return this.worker( 'isDir', path );
	}

	listFiles( path: string, options: { prependPath?: boolean } = {} ): Promise< string[] > {
		return this.worker( 'listFiles', path, options );
	}

	async goTo( path: string ): Promise< void > {
		await this.remote.control.call( 'goTo', [ path ] );
	}

	async getCurrentURL(): Promise< string > {
		return this.path;
	}

	async pathToInternalUrl( path: string ): Promise< string > {
		return this.remote.siteUrl + ( path.startsWith( '/' ) ? path : `/${ path }` );
	}

	async internalUrlToPath( url: string ): Promise< string > {
		const given = new URL( url, `${ this.remote.siteUrl }/` ).href;
		return given.startsWith( this.remote.siteUrl ) ? given.slice( this.remote.siteUrl.length ) || '/' : given;
	}

	async onMessage( handler: ( data: string ) => void ): Promise< () => void > {
		return this.remote.worker.on( 'message', ( data ) => handler( String( data ) ) );
	}

	async onNavigation( handler: ( path: string ) => void ): Promise< () => void > {
		return this.remote.control.on( 'navigation', ( data ) => handler( String( data ) ) );
	}

	async onDownloadProgress( handler: ( progress: Progress ) => void ): Promise< void > {
		// All downloads are complete before a client exists.
		handler( { stage: 'ready', fraction: 1 } );
	}

	async isReady(): Promise< true > {
		return true;
	}

	async runBlueprint( blueprint: Blueprint ): Promise< void > {
		await this.worker( 'runSteps', await loadResources( blueprint ) );
		if ( undefined !== blueprint.landingPage ) {
			await this.goTo( blueprint.landingPage );
		}
	}

	applyBlueprint( blueprint: Blueprint ): Promise< void > {
		return this.runBlueprint( blueprint );
	}

	/** Runs the steps of the boot. Reports code of the visitor that fails and goes on, so that it can be fixed in the sandbox. */
	async applyDuringBoot( steps: ReadyStep[] ): Promise< void > {
		const failures = await this.worker< EngineFailure[] >( 'runBootSteps', steps );
		for ( const failure of failures ) {
			this.problem( failure.message );
			this.progress.notice( failure );
		}
	}

	async exec( command: string, args: string[] = [], options: ExecOptions = {} ): Promise< { executionId: string; exitCode: number } > {
		const executionId = options.executionId ?? crypto.randomUUID();
		if ( options.onOutput ) {
			this.outputs.set( executionId, options.onOutput );
		}
		try {
			const exitCode = await this.worker< number >( 'exec', command, args, { executionId, cwd: options.cwd } );
			return { executionId, exitCode };
		} finally {
			this.outputs.delete( executionId );
		}
	}

	changedFiles( target?: string ): Promise< ChangedFile[] > {
		return this.worker( 'changedFiles', target );
	}

	async diagnostics(): Promise< Diagnostics > {
		return { ...this.facts, cache: this.store.state, crossOriginIsolated: true === globalThis.crossOriginIsolated, milliseconds: { ...this.progress.milliseconds }, problems: [ ...this.problems ] };
	}

	async destroy(): Promise< void > {
		await this.remote.control.call( 'destroy' ).catch( () => {} );
		this.remote.close();
	}

	private problem( text: string ): void {
		if ( this.problems.length < 50 ) {
			this.problems.push( text );
		}
	}

	private worker< Value >( method: string, ...args: unknown[] ): Promise< Value > {
		return this.remote.worker.call< Value >( method, args );
	}
}
