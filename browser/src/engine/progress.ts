/** Progress of a boot: fractions never fall, and a boot without any progress is given up. */
import { EngineError, type EngineFailure, type Progress } from './api.js';

const stageEnds: Record< Exclude< Progress[ 'stage' ], 'notice' >, number > = {
	download: 0.5,
	runtime: 0.6,
	files: 0.7,
	install: 0.85,
	roots: 0.88,
	blueprint: 0.95,
	open: 0.98,
	ready: 1,
};

/** A boot in which nothing moves for this long is given up. */
const stalledAfter = 120_000;

/** Reports progress, measures stages and watches for a standstill. */
export class BootProgress {
	readonly milliseconds: Record< string, number > = {};
	private readonly began = performance.now();
	private fraction = 0;
	private timer: ReturnType< typeof setTimeout > | undefined;
	private stage: Progress[ 'stage' ] = 'download';
	private fail: ( error: EngineError ) => void = () => {};
	/** Rejects when the boot stands still. */
	readonly stalled: Promise< never >;

	constructor( private readonly listener: ( progress: Progress ) => void ) {
		this.stalled = new Promise( ( _resolve, reject ) => {
			this.fail = reject;
		} );
		this.stalled.catch( () => {} );
		this.touch();
	}

	/** Reports that a stage has ended (`done` 1) or has progressed. */
	move( stage: Exclude< Progress[ 'stage' ], 'notice' >, done = 1 ): void {
		this.touch();
		this.stage = stage;
		const ends = Object.values( stageEnds );
		const end = stageEnds[ stage ];
		const begin = ends[ ends.indexOf( end ) - 1 ] ?? 0;
		this.fraction = Math.max( this.fraction, begin + ( end - begin ) * Math.min( 1, done ) );
		if ( done >= 1 ) {
			this.milliseconds[ stage ] = Math.round( performance.now() - this.began );
		}
		this.report( { stage, fraction: this.fraction } );
	}

	/** Reports a failure that does not stop the boot. */
	notice( failure: EngineFailure ): void {
		this.touch();
		this.report( { stage: 'notice', fraction: this.fraction, notice: failure } );
	}

	/** Stops watching for a standstill. */
	end(): void {
		clearTimeout( this.timer );
	}

	private report( progress: Progress ): void {
		try {
			this.listener( progress );
		} catch ( thrown ) {
			// A handler of the page must not break the boot.
			console.error( thrown );
		}
	}

	private touch(): void {
		clearTimeout( this.timer );
		this.timer = setTimeout( () => {
			this.fail( new EngineError( 'wp_codebox_browser_boot_timeout', `The sandbox made no progress for ${ stalledAfter / 1000 } seconds (stage: ${ this.stage }).`, 'Reload the page. If it happens again, close other tabs, or use another browser.' ) );
		}, stalledAfter );
	}
}
