/** Loads what the steps of a blueprint refer to by URL, before the steps go to the worker. */
import { EngineError, type Blueprint, type BlueprintStep } from './api.js';

/** A step with the contents of its resources. `number` is its position in `steps`, from 1; 0 for a short form. */
export interface ReadyStep {
	number: number;
	step: BlueprintStep;
}

/** Fields of a blueprint that have no effect here, but do no harm. */
const ignored = new Set( [ '$schema', 'meta', 'preferredVersions', 'phpExtensionBundles', 'features', 'landingPage', 'constants', 'codebox' ] );

/** Returns the steps in order: short forms first, as published, then `steps`. */
export async function loadResources( blueprint: Blueprint ): Promise< ReadyStep[] > {
	const steps: ReadyStep[] = [];
	const add = async ( number: number, step: BlueprintStep ) => {
		steps.push( { number, step: ( await literal( number, step.step, step ) ) as BlueprintStep } );
	};
	for ( const field of Object.keys( blueprint ) ) {
		if ( ! ignored.has( field ) && ! [ 'login', 'siteOptions', 'plugins', 'steps' ].includes( field ) ) {
			throw new EngineError( 'wp_codebox_browser_step_unsupported', `The blueprint field ${ JSON.stringify( field ) } is not supported.`, 'Remove the field, or give its content as entries of "steps".' );
		}
	}
	if ( undefined !== blueprint.siteOptions ) {
		await add( 0, { step: 'setSiteOptions', options: blueprint.siteOptions } );
	}
	for ( const plugin of blueprint.plugins ?? [] ) {
		await add( 0, { step: 'installPlugin', pluginData: plugin } );
	}
	if ( blueprint.login ) {
		await add( 0, { step: 'login', ...( 'object' === typeof blueprint.login ? blueprint.login : {} ) } );
	}
	for ( const [ index, step ] of ( blueprint.steps ?? [] ).entries() ) {
		if ( 'string' === typeof step ) {
			throw unsupported( index + 1, step, 'a step must be an object' );
		}
		if ( step ) {
			await add( index + 1, step );
		}
	}
	return steps;
}

function unsupported( number: number, name: string, reason: string ): EngineError {
	return new EngineError( 'wp_codebox_browser_step_unsupported', `Step ${ number } (${ name }) is not supported here: ${ reason }.` );
}

/** Replaces every `{resource:"url"}` below a value by its contents. */
async function literal( number: number, name: string, value: unknown ): Promise< unknown > {
	if ( null === value || 'object' !== typeof value || value instanceof Uint8Array || value instanceof Blob || value instanceof ArrayBuffer ) {
		return value;
	}
	if ( Array.isArray( value ) ) {
		return Promise.all( value.map( ( one ) => literal( number, name, one ) ) );
	}
	const fields = value as Record< string, unknown >;
	if ( 'url' === fields.resource ) {
		const url = new URL( String( fields.url ), location.href );
		if ( url.origin !== location.origin ) {
			throw unsupported( number, name, `it loads a file from ${ url.host }, and nothing is loaded from other hosts` );
		}
		const response = await fetch( url, { credentials: 'same-origin' } ).catch( () => null );
		if ( null === response || ! response.ok ) {
			throw new EngineError( 'wp_codebox_browser_asset_missing', `Step ${ number } (${ name }): the site does not serve ${ url.pathname.split( '/' ).pop() } (status ${ response?.status ?? 'none' }).` );
		}
		return { resource: 'literal', name: url.pathname.split( '/' ).pop() || 'file', contents: new Uint8Array( await response.arrayBuffer() ) };
	}
	if ( 'string' === typeof fields.resource && ! [ 'literal', 'literal:directory', 'vfs' ].includes( fields.resource ) ) {
		throw unsupported( number, name, `resources of the kind ${ JSON.stringify( fields.resource ) } are on other hosts, and nothing is loaded from there` );
	}
	const done: Record< string, unknown > = {};
	for ( const [ key, one ] of Object.entries( fields ) ) {
		done[ key ] = await literal( number, name, one );
	}
	return done;
}
