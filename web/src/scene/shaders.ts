// Discs and rings drawn as points: one draw call for all tokens, with smooth edges at every size.

/** `facing` runs from -1 (far side) to 1 (towards the eye); flat scenes have it at 1. See order.clarity. */
export const POINT_VERTEX = /* glsl */ `
  attribute vec3 colour;
  uniform float radius;
  uniform float distance0;
  uniform float flatScene;
  varying vec3 tint;
  varying float clarity;
  varying float pixels;
  void main() {
    vec4 seen = modelViewMatrix * vec4(position, 1.0);
    vec3 towards = normalize(cameraPosition);
    float share = clamp((dot(position, towards) + 0.45) / 0.75, 0.0, 1.0);
    clarity = mix(0.34 + 0.66 * share * share * (3.0 - 2.0 * share), 1.0, flatScene);
    tint = colour;
    // Zooming in separates tokens: they grow more slowly than the scene.
    pixels = radius * pow(distance0 / max(0.01, -seen.z), 0.6);
    gl_PointSize = 2.0 * pixels + 2.0;
    gl_Position = projectionMatrix * seen;
  }
`;

/** A softly shaded disc with a rim, so that tokens of one colour stay countable. */
export const DISC_FRAGMENT = /* glsl */ `
  uniform vec3 background;
  uniform vec3 rim;
  uniform float opacity;
  varying vec3 tint;
  varying float clarity;
  varying float pixels;
  void main() {
    vec2 place = (gl_PointCoord - 0.5) * (2.0 * pixels + 2.0);
    float away = length(place);
    float cover = clamp(pixels - away + 0.5, 0.0, 1.0);
    if (cover <= 0.0) discard;
    float light = 1.0 - 0.16 * clamp((place.x + place.y) / max(pixels, 1.0), -1.0, 1.0);
    float edge = smoothstep(pixels - max(1.0, 0.22 * pixels), pixels, away);
    vec3 shaded = mix(min(tint * light, vec3(1.0)), rim, 0.42 * edge);
    gl_FragColor = vec4(mix(background, shaded, clarity), cover * opacity);
  }
`;

/** A hollow marker: where the exact run has the token. */
export const RING_FRAGMENT = /* glsl */ `
  uniform vec3 background;
  uniform vec3 rim;
  varying float clarity;
  varying float pixels;
  varying vec3 tint;
  void main() {
    vec2 place = (gl_PointCoord - 0.5) * (2.0 * pixels + 2.0);
    float cover = 0.85 * clamp(1.1 - abs(length(place) - pixels + 0.8), 0.0, 1.0);
    if (cover <= 0.0) discard;
    gl_FragColor = vec4(mix(background, rim, clarity), cover);
  }
`;

export const TRAIL_VERTEX = /* glsl */ `
  attribute vec3 colour;
  attribute float age;
  uniform float flatScene;
  varying vec4 tint;
  void main() {
    float share = clamp((dot(position, normalize(cameraPosition)) + 0.45) / 0.75, 0.0, 1.0);
    float clarity = mix(0.34 + 0.66 * share, 1.0, flatScene);
    tint = vec4(colour, 0.75 * clarity * (1.0 - age));
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }
`;

export const TRAIL_FRAGMENT = /* glsl */ `
  varying vec4 tint;
  void main() { gl_FragColor = tint; }
`;
