/** Worker of a sandbox: PHP and WordPress. It talks to the page over one port and answers requests of the service worker. */
import type { EngineFailure, ExecOutput } from './api.js';
import { exec } from './exec.js';
import { toFailure } from './errors.js';
import { fileHandlers } from './files.js';
import type { BootInput, ForwardedAnswer, ForwardedRequest } from './protocol.js';
import type { ReadyStep } from './resources.js';
import { Rpc } from './rpc.js';
import { Site } from './site.js';
import { runStep } from './steps.js';

type Incoming = { type: 'port' } | { type: 'request'; request: ForwardedRequest };

let page: Rpc | undefined;

const site = new Site( {
	report: ( stage, done ) => page?.emit( 'progress', { stage, done } ),
	message: ( data ) => page?.emit( 'message', data ),
	problem: ( text ) => page?.emit( 'problem', text ),
	fetchStatic: async ( path ) => ( await page?.call< Uint8Array | null >( 'fetchStatic', [ path ] ).catch( () => null ) ) ?? null,
} );

async function runSteps( steps: ReadyStep[] ): Promise< void > {
	for ( const step of steps ) {
		await runStep( site, step );
	}
}

/**
 * Runs the steps of the boot. When code of the visitor fails to start, the boot goes on, because the visitor can
 * fix it in the sandbox; such failures are returned. Every other failure ends the boot.
 */
async function runBootSteps( steps: ReadyStep[] ): Promise< EngineFailure[] > {
	const failures: EngineFailure[] = [];
	for ( const [ index, step ] of steps.entries() ) {
		try {
			await runStep( site, step );
		} catch ( thrown ) {
			const failure = toFailure( thrown, 'wp_codebox_browser_step_failed' );
			if ( 'wp_codebox_browser_step_failed' !== failure.code || ! [ 'activatePlugin', 'activateTheme', 'login' ].includes( step.step.step ) ) {
				throw thrown;
			}
			failures.push( failure );
		}
		page?.emit( 'progress', { stage: 'blueprint', done: Math.min( 0.99, ( index + 1 ) / steps.length ) } );
	}
	return failures;
}

function connect( port: MessagePort ): void {
	page = new Rpc( port, {
		boot: ( input: BootInput ) => site.boot( input ),
		run: ( options: { code?: string; scriptPath?: string } ) => site.run( { code: options.code, scriptPath: options.scriptPath } ),
		request: ( request: Parameters< Site[ 'request' ] >[ 0 ] ) => site.request( request ),
		runSteps,
		runBootSteps,
		exec: ( command: string, args: string[], options: { executionId: string; cwd?: string } ) => exec( site, command, args, options.cwd, ( stream, data ) => page?.emit( 'output', { executionId: options.executionId, stream, data } satisfies ExecOutput ) ),
		changedFiles: ( target?: string ) => site.baseline.changed( target ),
		...fileHandlers( site ),
	}, 'wp_codebox_browser_boot_failed' );
}

async function answer( request: ForwardedRequest, port: MessagePort ): Promise< void > {
	const { status, headers, body } = await site.respond( { url: request.url, method: request.method, headers: request.headers, body: null === request.body ? undefined : new Uint8Array( request.body ) }, request.navigation, true === request.framed ).catch( ( thrown ) => ( { status: 500, headers: [ [ 'content-type', 'text/plain; charset=utf-8' ] ] as Array< [ string, string ] >, body: new TextEncoder().encode( toFailure( thrown, 'wp_codebox_browser_request_failed' ).message ) } ) );
	port.postMessage( { type: 'response', status, headers, body } satisfies ForwardedAnswer );
}

self.addEventListener( 'message', ( event: MessageEvent< Incoming > ) => {
	const port = event.ports[ 0 ];
	if ( undefined === port ) {
		return;
	}
	if ( 'port' === event.data.type ) {
		connect( port );
	} else {
		void answer( event.data.request, port );
	}
} );
